# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A group of ranks and its verbs, over libhlcomm's C interface."""

import collections
import ctypes
import datetime
import enum
import sys
import threading
from ctypes import byref, c_size_t, c_void_p

from . import library, memory

ANY_RANK = -1


class ReduceOp(enum.IntEnum):
    """How elements are reduced to one."""

    SUM = 1
    AVG = 2
    PRODUCT = 3
    MIN = 4
    MAX = 5
    BAND = 6
    BOR = 7
    BXOR = 8
    PREMUL_SUM = 9


class PremulSum:
    """The sum of elements, each multiplied by `factor` first."""

    def __init__(self, factor):
        self.factor = float(factor)


class Verb(enum.IntEnum):
    """hlcomm_verb."""

    BARRIER = 1
    BROADCAST = 2
    ALL_REDUCE = 3
    REDUCE = 4
    ALL_GATHER = 5
    GATHER = 6
    SCATTER = 7
    REDUCE_SCATTER = 8
    ALL_TO_ALL = 9


REDUCTIONS = (Verb.ALL_REDUCE, Verb.REDUCE, Verb.REDUCE_SCATTER)
FOR_COMPLEX = (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PREMUL_SUM)
NOTHING = memory.Memory(None, 0, "uint8", None)


def seconds(timeout):
    """Returns the seconds of a timedelta or a number; 0 for None, which means the group's timeout."""
    if timeout is None:
        return 0.0
    if isinstance(timeout, datetime.timedelta):
        timeout = timeout.total_seconds()
    if timeout <= 0:
        raise ValueError(f"a timeout of {timeout} s: give more than 0")
    return float(timeout)


def what_ends_it():
    """Returns the exception that is being handled, or that ends the program, as one line; "" if
    there is none, as far as this thread knows."""
    error = sys.exc_info()[1]
    if error is None and not hasattr(sys, "ps1"):  # A prompt goes on after its last exception.
        error = getattr(sys, "last_value", None)
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return ""
    words = str(error).strip().partition("\n")[0][:200]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


class Work:
    """A call in progress. The object may be dropped; the call goes on."""

    def __init__(self, handle, memories):
        self._handle = handle
        self._lock = threading.Lock()
        self._memories = memories  # The caller's memory, kept until the call is over.
        self._error = None
        self._source = ANY_RANK
        self._over = False
        self._free = library.load().hlcomm_free_work  # Kept here: modules are gone when the interpreter ends.

    def wait(self, timeout=None):
        """Blocks until the call is over; returns True, or raises the error that ended it.

        After TimedOut, because of `timeout`, the call goes on: call wait again.
        """
        while not self._over:
            status = library.load().hlcomm_wait(self._handle, seconds(timeout) or -1.0)
            if status != 0:
                if not library.load().hlcomm_done(self._handle):
                    library.check(status)
                # The call may have ended since; the status then tells how.
                status = library.load().hlcomm_wait(self._handle, -1.0)
            self._settle(status)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self):
        """Whether the call is over, with success or not."""
        return self._over or library.load().hlcomm_done(self._handle) == 1

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        """Waits for the end of the call; returns the error that ended it, or None."""
        try:
            self.wait()
        except library.CommError as error:
            return error
        return None

    def source_rank(self):
        """Waits for the end of a receive; returns the rank that sent the message."""
        self.wait()
        return self._source

    def _settle(self, status):
        # Another thread may do the same at the same time.
        with self._lock:
            if self._over:
                return
            try:
                library.check(status)
                self._source = library.load().hlcomm_source(self._handle)
                for each in self._memories:
                    if each.finish:
                        each.finish()
            except library.CommError as error:
                self._error = error
            self._memories = ()
            self._over = True

    def __del__(self):
        self._free(self._handle)


class ProcessGroup:
    """Ranks that communicate: all make the same calls in the same order.

    The URL is env://, tcp://HOST:PORT, file:///PATH or pmi://. Thread-safe. Inputs and outputs are
    any objects that memory.py accepts; ranks are numbers in this group. Every verb returns None, or
    a Work if async_op is true.
    """

    def __init__(self, url="env://", rank=-1, size=-1, name="default", timeout=None):
        handle = c_void_p()
        library.check(library.load().hlcomm_init(url.encode(), rank, size, name.encode(),
                                                 seconds(timeout), byref(handle)))
        self._adopt(handle, range(library.load().hlcomm_size(handle)))

    def _adopt(self, handle, ranks):
        self._handle = handle
        self.ranks = list(ranks)  # The ranks in the group that this one was made from.
        self._rank = library.load().hlcomm_rank(handle)
        self._size = library.load().hlcomm_size(handle)
        self._lock = threading.Lock()
        self._under_way = collections.deque()
        self._callers = set()  # The threads that wait in a call.

    @property
    def handle(self):
        if self._handle is None:
            raise library.InvalidArgument("the group was destroyed")
        return self._handle

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def new_group(self, ranks, timeout=None):
        """Makes a group of some of these ranks. All ranks call it; ranks outside it get None."""
        handle = c_void_p()
        numbers = (ctypes.c_int * len(ranks))(*ranks)
        library.check(library.load().hlcomm_new_group(self.handle, numbers, len(ranks),
                                                      seconds(timeout), byref(handle)))
        if not handle:
            return None
        group = ProcessGroup.__new__(ProcessGroup)
        group._adopt(handle, ranks)
        return group

    def destroy(self):
        """Leaves the group. No call of it may be in progress. If an exception ends this rank, ranks
        that still wait for it are told which exception."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library.load().hlcomm_leave(handle, what_ends_it().encode("utf-8", "replace"))
            self._under_way.clear()

    def is_in_use(self):
        """Whether a thread waits in a call that has no Work: then the group cannot be left."""
        return bool(self._callers)

    def _wait_in(self, function, *arguments):
        caller = threading.get_ident()
        self._callers.add(caller)
        try:
            library.check(function(self.handle, *arguments))
        finally:
            self._callers.discard(caller)

    def abort(self, why="aborted"):
        """Makes all waiting calls fail with Cancelled, on every rank."""
        library.load().hlcomm_abort(self.handle, why.encode())

    # Every verb calls this.
    def call(self, verb, given=NOTHING, wanted=NOTHING, op=0, root=0, give=None, get=None,
             async_op=False, timeout=None):
        kind = given if given.address is not None or wanted is NOTHING else wanted
        factor = 0.0
        if verb in REDUCTIONS:
            if isinstance(op, PremulSum):
                op, factor = ReduceOp.PREMUL_SUM, op.factor
            if kind.type == memory.BYTE:
                raise TypeError(f"{verb.name.lower()} has no arithmetic for {kind.name}; there are "
                                f"{', '.join(memory.TYPES)}")
            if kind.name in memory.COMPLEX and op not in FOR_COMPLEX:
                raise ValueError(f"{verb.name.lower()}: {ReduceOp(op).name} of {kind.name}; complex "
                                 "numbers have SUM, AVG and PremulSum")
        if given is not NOTHING and wanted is not NOTHING and given.name != wanted.name:
            raise TypeError(f"{verb.name.lower()} of {given.name} into {wanted.name}; "
                            "give the same type")
        call = library.Call(verb, kind.type, op, root, factor, given.address, given.count,
                            wanted.address, wanted.count, counts(give), counts(get),
                            seconds(timeout))
        if not async_op:
            self._wait_in(library.load().hlcomm_run, byref(call))
            if wanted.finish:
                wanted.finish()
            return None
        handle = c_void_p()
        library.check(library.load().hlcomm_start(self.handle, byref(call), byref(handle)))
        return self.under_way(Work(handle, (wanted, given)))

    def under_way(self, work):
        """Keeps the memory of a call alive even if its Work is dropped."""
        with self._lock:
            while self._under_way and self._under_way[0].is_completed():
                self._under_way.popleft()
            self._under_way.append(work)
        return work

    def barrier(self, async_op=False, timeout=None):
        return self.call(Verb.BARRIER, async_op=async_op, timeout=timeout)

    def monitored_barrier(self, timeout=None):
        self._wait_in(library.load().hlcomm_monitored_barrier, seconds(timeout))

    def broadcast(self, data, root=0, **how):
        # The memory of the root may be read-only.
        data = memory.of(data, "the data", self._rank != root)
        return self.call(Verb.BROADCAST, wanted=data, root=root, **how)

    def all_reduce(self, data, op=ReduceOp.SUM, **how):
        data = memory.target(data, "the data")
        return self.call(Verb.ALL_REDUCE, data, data, op=op, **how)

    def reduce(self, data, root=0, op=ReduceOp.SUM, **how):
        at_root = self._rank == root
        data = memory.of(data, "the data", at_root)
        return self.call(Verb.REDUCE, data, data if at_root else NOTHING, op=op, root=root, **how)

    def all_gather_into(self, output, given, get=None, **how):
        """`output` gets all inputs in order; `get` has the elements of each if they differ."""
        return self.call(Verb.ALL_GATHER, memory.source(given), memory.target(output), get=get,
                         **how)

    def all_gather(self, outputs, given, **how):
        outputs = self._for_each(outputs, "the outputs", True)
        sizes = [each.count for each in outputs]
        get = sizes if len(set(sizes)) > 1 else None
        return self.call(Verb.ALL_GATHER, memory.source(given), memory.joined(outputs, True),
                         get=get, **how)

    def gather(self, given, outputs=None, root=0, **how):
        output = NOTHING
        if self._rank == root:
            output = memory.joined(self._for_each(outputs, "the outputs", True, same=True), True)
        return self.call(Verb.GATHER, memory.source(given), output, root=root, **how)

    def scatter(self, output, inputs=None, root=0, **how):
        given = NOTHING
        if self._rank == root:
            given = memory.joined(self._for_each(inputs, "the inputs", False, same=True), False)
        return self.call(Verb.SCATTER, given, memory.target(output), root=root, **how)

    def reduce_scatter_from(self, output, given, op=ReduceOp.SUM, give=None, **how):
        """`given` has a part for each rank, in order; `give` has the elements of each part."""
        return self.call(Verb.REDUCE_SCATTER, memory.source(given), memory.target(output), op=op,
                         give=give, **how)

    def reduce_scatter(self, output, inputs, op=ReduceOp.SUM, **how):
        inputs = self._for_each(inputs, "the inputs", False)
        sizes = [each.count for each in inputs]
        give = sizes if len(set(sizes)) > 1 else None
        return self.call(Verb.REDUCE_SCATTER, memory.joined(inputs, False), memory.target(output),
                         op=op, give=give, **how)

    def all_to_all_single(self, output, given, get=None, give=None, **how):
        """`get` and `give` have the elements from and for each rank, if they differ."""
        given, wanted = memory.source(given), memory.target(output)
        if (get is None) != (give is None):  # The sizes of one side may be equal.
            get = get or [wanted.count // self._size] * self._size
            give = give or [given.count // self._size] * self._size
        return self.call(Verb.ALL_TO_ALL, given, wanted, give=give, get=get, **how)

    def all_to_all(self, outputs, inputs, **how):
        outputs = self._for_each(outputs, "the outputs", True)
        inputs = self._for_each(inputs, "the inputs", False)
        return self.call(Verb.ALL_TO_ALL, memory.joined(inputs, False),
                         memory.joined(outputs, True), give=[each.count for each in inputs],
                         get=[each.count for each in outputs], **how)

    def isend(self, data, to, tag=0):
        data, handle = memory.source(data, "the data"), c_void_p()
        library.check(library.load().hlcomm_start_send(
            self.handle, data.type, data.address, data.count, to, tag, byref(handle)))
        return self.under_way(Work(handle, (data,)))

    def irecv(self, data, source=ANY_RANK, tag=0):
        data, handle = memory.target(data, "the data"), c_void_p()
        library.check(library.load().hlcomm_start_recv(
            self.handle, data.type, data.address, data.count, source, tag, byref(handle)))
        return self.under_way(Work(handle, (data,)))

    def _for_each(self, things, what, writable, same=False):
        memories = memory.many(things, what, writable)
        if len(memories) != self._size:
            raise ValueError(f"{what}: {len(memories)} for {self._size} ranks")
        if same and len({each.count for each in memories}) > 1:
            raise ValueError(f"{what} differ in size: {[each.count for each in memories]}")
        return memories


def counts(numbers):
    return None if numbers is None else (c_size_t * len(numbers))(*numbers)
