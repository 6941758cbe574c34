# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Tells of the end of each call when it ends, on threads of which none waits for what is told.

Needs nothing of torch's: a call is any object with the methods that Completions names.
"""

import atexit
import heapq
import queue
import threading

# How long a thread stays without work.
IDLE_SECONDS = 30
# How long a thread waits for a message before it looks whether the group is being left.
MESSAGE_SECONDS = 0.5
# How long the end of the program waits for those who tell: a callback may wait for other ranks.
END_SECONDS = 2


class Telling:
    """Counts the threads that tell. What they call may be C++, and one that is in there when the
    interpreter ends would abort the process, so its end waits for them. Thread-safe."""

    def __init__(self):
        self._changed = threading.Condition()
        self._threads = 0
        atexit.register(self._await_all)

    def __enter__(self):
        with self._changed:
            self._threads += 1

    def __exit__(self, *_):
        with self._changed:
            self._threads -= 1
            self._changed.notify_all()

    def _await_all(self):
        with self._changed:
            self._changed.wait_for(lambda: self._threads == 0, END_SECONDS)


_telling = Telling()


class Pool:
    """Runs functions on threads: on an idle one, else on a new one, so that none waits for another.
    Each waits for something, and returns the function that tells of it. Thread-safe."""

    def __init__(self, name):
        self._name = name
        self._lock = threading.Lock()
        self._jobs = queue.SimpleQueue()
        self._threads = 0
        self._free = 0  # Threads for which no job is in the queue.

    def run(self, job):
        """Returns at once. A system that gives no more threads lets the job wait for one of ours;
        raises RuntimeError if there is none."""
        with self._lock:
            self._jobs.put(job)
            if self._free > 0:
                self._free -= 1
                return
            try:
                threading.Thread(target=self._serve, daemon=True, name=self._name).start()
                self._threads += 1
            except RuntimeError:
                if self._threads == 0:
                    raise
                self._free -= 1  # The next one that is done takes it.

    def _serve(self):
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._free > 0:
                        self._free -= 1
                        self._threads -= 1
                        return
                continue
            tell = job()
            with _telling:
                tell()
                del job, tell  # An idle thread keeps nothing alive.
            with self._lock:
                self._free += 1


class Completions:
    """The calls of a group whose ends are to be told. Thread-safe.

    A call has await_end(seconds), which returns whether it is over, after that time at the latest
    (None: when it is over), and then needs its group no more; tell(), which may take as long as it
    likes; and give_up(), instead of tell(), where the group is left first. Collectives end in the order of their numbers, so one
    thread at a time waits for the next of them and hands over before it tells. Each message has a
    thread of its own.
    """

    def __init__(self):
        self._pool = Pool("hlaunch-futures")
        self._changed = threading.Condition()
        self._collectives = []  # A heap of (number, call), without the one that is waited for.
        self._next = None  # The number of that one; None: no thread waits.
        self._messages = 0  # Those that are waited for.
        self._left = False

    def add_collective(self, number, call):
        with self._changed:
            if self._next is not None and number > self._next:
                heapq.heappush(self._collectives, (number, call))
                return
            if self._next is None:
                self._next = number
                job = self._lead
            else:  # Asked for late: those after it are waited for already.
                job = self._await_one
        self._pool.run(lambda: job(call))

    def add_message(self, call):
        with self._changed:
            self._messages += 1
        self._pool.run(lambda: self._await_message(call))

    def leave(self):
        """Gives up messages; when this returns no thread uses one any more. The library itself ends
        collectives."""
        with self._changed:
            self._left = True
            while self._messages > 0:
                self._changed.wait()

    def _lead(self, call):
        call.await_end(None)
        with self._changed:
            self._next, following = (heapq.heappop(self._collectives) if self._collectives
                                     else (None, None))
        if following is not None:
            self._pool.run(lambda: self._lead(following))
        return call.tell

    @staticmethod
    def _await_one(call):
        call.await_end(None)
        return call.tell

    def _await_message(self, call):
        over = False
        while not over and not self._left:
            over = call.await_end(MESSAGE_SECONDS)
        return lambda: self._end_message(call.tell if over else call.give_up)

    def _end_message(self, tell):
        with self._changed:
            self._messages -= 1
            self._changed.notify_all()
        tell()
