# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The Work that torch gets for a call."""

import datetime
import threading

import torch
import torch.distributed as dist

from . import library


class TorchWork(dist.Work):
    """One or several calls in progress; `result` is the value that torch gets. Thread-safe.

    Once its future was asked for, a Completions sets the future to the return value of `told`, or
    to the result. `number` is a collective's number, or None for a message. The future's error is
    one of C++: DDP looks for tensors in whatever value a future has, and crashes where that is an
    exception of Python.
    """

    def __init__(self, completions, works, result, number=None, told=None):
        super().__init__()
        self._completions, self._works, self._result = completions, works, result
        self._number, self._told = number, told
        self._lock = threading.Lock()
        self._first = self._future = None

    def wait(self, timeout=datetime.timedelta(0)):
        for work in self._works:
            work.wait(timeout if timeout > datetime.timedelta(0) else None)
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return all(work.is_completed() for work in self._works)

    def is_success(self):
        return all(work.is_success() for work in self._works)

    def exception(self):
        return next((error for error in (work.exception() for work in self._works) if error), None)

    def result(self):
        return self._result

    def source_rank(self):
        return self._works[0].source_rank()

    _source_rank = source_rank

    def get_future(self):
        with self._lock:
            if self._future is not None:
                return self._future
            self._first = torch.futures.Future()
            self._future = self._first.then(torch.futures.Future.value)  # Raises its exception.
        if not self._works:
            self.tell()
        elif self._number is None:
            self._completions.add_message(self)
        else:
            self._completions.add_collective(self._number, self)
        return self._future

    # ---- Called by Completions, on its threads.

    def await_end(self, seconds):
        """Waits at most `seconds` for each call; returns whether all calls are over. Nothing that
        needs the group is asked of a finished call afterwards, so the group may then be left."""
        for work in self._works:
            try:
                work.wait(seconds)
            except library.TimedOut:
                if not work.is_completed():
                    return False
                work.exception()  # It has ended since; this fetches its outcome.
            except library.CommError:
                pass  # tell() reports it.
        return True

    def tell(self):
        """Sets the future of a finished call; its callbacks run here."""
        try:
            self.wait()
            value = self._told() if self._told else self._result
        except Exception as error:  # Any error belongs to the future.
            self._first.set_exception(error)
        else:
            self._first.set_result(value)

    def give_up(self):
        self._first.set_exception(library.Cancelled(
            "this rank left the group while the message was under way"))
