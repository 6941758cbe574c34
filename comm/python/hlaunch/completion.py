# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Reports the end of each call as soon as it ends, on threads that do not wait for the reports.

Needs nothing of torch: a call is any object with the methods that Completions names.
"""

import atexit
import heapq
import queue
import threading

# How long a thread stays without work.
IDLE_SECONDS = 30
# How long a thread waits for a message before it checks whether the group is being left.
MESSAGE_SECONDS = 0.5
# How long the program's end waits for threads that report: a callback may wait for other ranks.
END_SECONDS = 2


class Telling:
    """Counts the threads that report. A report may call C++, and a thread that is in C++ when the
    interpreter ends would abort the process, so the program's end waits for them. Thread-safe."""

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
    Each function waits for something, and returns the function that reports it. Thread-safe."""

    def __init__(self, name):
        self._name = name
        self._lock = threading.Lock()
        self._jobs = queue.SimpleQueue()
        self._threads = 0
        self._free = 0  # Threads for which the queue has no job.

    def run(self, job):
        """Returns at once. If the system gives no more threads, the job waits for one of ours;
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
                self._free -= 1  # The next thread that is done takes the job.

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
    """The calls of a group whose ends are to be reported. Thread-safe.

    A call has three methods. await_end(seconds) returns whether the call is over, after that time
    at the latest (None: when it is over); afterwards the call needs its group no more. tell() may
    take any time. give_up() replaces tell() if the group is left first. Collectives end in the
    order of their numbers, so only one thread at a time waits for the next one, and it hands over
    before it calls tell(). Each message has its own thread.
    """

    def __init__(self):
        self._pool = Pool("hlaunch-futures")
        self._changed = threading.Condition()
        self._collectives = []  # A heap of (number, call), without the one that a thread waits for.
        self._next = None  # The number of that one; None if no thread waits.
        self._messages = 0  # The number of messages that threads wait for.
        self._left = False

    def add_collective(self, number, call):
        with self._changed:
            if self._next is not None and number > self._next:
                heapq.heappush(self._collectives, (number, call))
                return
            if self._next is None:
                self._next = number
                job = self._lead
            else:  # Asked for late: a thread already waits for a later one.
                job = self._await_one
        self._pool.run(lambda: job(call))

    def add_message(self, call):
        with self._changed:
            self._messages += 1
        self._pool.run(lambda: self._await_message(call))

    def leave(self):
        """Gives up messages; afterwards no thread uses one. The library itself ends collectives."""
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
