# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The methods that torch calls on a group, for both kinds of group in torch_group.py."""

import atexit
import datetime
import weakref

import torch
from torch.distributed import distributed_c10d as c10d

from . import memory
from .completion import Completions
from .process_group import ANY_RANK, PremulSum, ReduceOp, what_ends_it
from .torch_work import TorchWork

# How long rank 0 waits for the other ranks when it leaves a group.
LEAVE_TIMEOUT = datetime.timedelta(seconds=5)

_live = weakref.WeakSet()


def _say_goodbye():
    """A script may end without destroy_process_group. So the other ranks learn that this one left,
    not that it died: they may have calls among themselves. Waits for no other rank."""
    for group in list(_live):
        group.leave_at_end()


atexit.register(_say_goodbye)


class Verbs:
    """The verbs under the names by which torch calls them from Python and C++. A class with them
    must call set_up."""

    def set_up(self, group, store, opened):
        """`group` is hlaunch's ProcessGroup; `store` is torch's; `opened` is a store to keep
        alive."""
        self._group, self._store, self._opened = group, store, opened
        self._completions = Completions()
        self._begun = 0
        _live.add(self)

    def calls_begun(self):
        """The number of collectives that have begun."""
        return self._begun

    def getBackendName(self):
        return "hlaunch"

    def shutdown(self):
        self._completions.leave()
        self._group.destroy()
        if self._store is not None and not what_ends_it():  # A failing rank does not wait.
            leave(self._store, self.rank(), self.size())
        self._store = self._opened = None

    def leave_at_end(self):
        if not self._group.is_in_use():
            self._completions.leave()
            self._group.destroy()

    def abort(self):
        self._group.abort("abort() was called")

    def _run(self, opts, calls, result, told=None):
        """Runs `calls`, which are functions that take async_op and timeout."""
        how = {"async_op": len(calls) > 1 or getattr(opts, "asyncOp", True)}
        timeout = getattr(opts, "timeout", None)
        if timeout is not None and timeout > datetime.timedelta(0):
            how["timeout"] = timeout
        works = [work for work in [call(**how) for call in calls] if work is not None]
        self._begun += 1  # Two threads may get the same number: their calls have no order either.
        return TorchWork(self._completions, works, result, self._begun, told)

    def broadcast(self, tensors, opts=c10d.BroadcastOptions()):
        group, root = self._group, opts.rootRank
        return self._run(opts, [lambda t=t, **how: group.broadcast(t, root, **how)
                                for t in tensors], tensors)

    def allreduce(self, tensors, opts=c10d.AllreduceOptions()):
        group, op = self._group, our_op(opts.reduceOp)
        return self._run(opts, [lambda t=t, **how: group.all_reduce(t, op, **how)
                                for t in tensors], tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, opts=c10d.ReduceOptions()):
        group, op, root = self._group, our_op(opts.reduceOp), opts.rootRank
        return self._run(opts, [lambda t=t, **how: group.reduce(t, root, op, **how)
                                for t in tensors], tensors)

    def allgather(self, outputs, inputs, opts=None):
        """`outputs` has a list for each input. The future's value has in its place a tensor with a
        row for each rank, as with NCCL, since torch's quantizing hooks read it that way."""
        return self._run(opts, [lambda o=o, i=i, **how: self._group.all_gather(o, i, **how)
                                for o, i in zip(outputs, inputs)], outputs,
                         lambda: [stacked(each) for each in outputs])

    def allgather_coalesced(self, outputs, inputs, opts=None):
        """`outputs` has a list for each rank."""
        return self.allgather([list(each) for each in zip(*outputs)], inputs, opts)

    def all_gather_single(self, output, given, opts=None):
        return self.all_gather_single_coalesced([output], [given], opts)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self._run(opts, [lambda o=o, i=i, **how: self._group.all_gather_into(o, i, **how)
                                for o, i in zip(outputs, inputs)], outputs)

    def gather(self, outputs, inputs, opts=c10d.GatherOptions()):
        output = outputs[0] if outputs else None
        return self._run(opts, [lambda **how: self._group.gather(
            inputs[0], output, opts.rootRank, **how)], outputs)

    def scatter(self, outputs, inputs, opts=c10d.ScatterOptions()):
        given = inputs[0] if inputs else None
        return self._run(opts, [lambda **how: self._group.scatter(
            outputs[0], given, opts.rootRank, **how)], outputs)

    def reduce_scatter(self, outputs, inputs, opts=c10d.ReduceScatterOptions()):
        op = our_op(opts.reduceOp)
        return self._run(opts, [lambda o=o, i=i, **how: self._group.reduce_scatter(o, i, op, **how)
                                for o, i in zip(outputs, inputs)], outputs)

    def reduce_scatter_single(self, output, given, opts=c10d.ReduceScatterOptions()):
        return self.reduce_scatter_single_coalesced([output], [given], opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=c10d.ReduceScatterOptions()):
        op = our_op(opts.reduceOp)
        return self._run(opts, [
            lambda o=o, i=i, **how: self._group.reduce_scatter_from(o, i, op, **how)
            for o, i in zip(outputs, inputs)], outputs)

    def alltoall(self, outputs, inputs, opts=None):
        return self._run(opts, [lambda **how: self._group.all_to_all(outputs, inputs, **how)],
                         outputs)

    def all_to_all_single(self, output, given, output_splits, input_splits, opts=None):
        get, give = in_elements(output, output_splits), in_elements(given, input_splits)
        return self._run(opts, [lambda **how: self._group.all_to_all_single(
            output, given, get, give, **how)], [output])

    def barrier(self, opts=None):
        return self._run(opts, [self._group.barrier], [])

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """`timeout` may be torch's BarrierOptions, which torch 2.14 passes to a Backend. The error
        names all missing ranks in any case."""
        self._group.monitored_barrier(getattr(timeout, "timeout", timeout))

    def send(self, tensors, to, tag=0):
        return TorchWork(self._completions, [self._group.isend(tensors[0], to, tag)], tensors)

    def recv(self, tensors, source, tag=0):
        return TorchWork(self._completions, [self._group.irecv(tensors[0], source, tag)], tensors)

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, ANY_RANK, tag)

    # The names before torch 2.13.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single


def leave(store, rank, size):
    """Makes rank 0 wait for the others, since they may still need a store in its process."""
    try:
        if store.add("hlaunch/left", 1) == size:
            store.set("hlaunch/left/all", "")
        if rank == 0:
            store.wait(["hlaunch/left/all"], LEAVE_TIMEOUT)
    except RuntimeError:  # The store is gone, or a rank did not leave in time.
        pass


def our_op(op):
    """Translates torch's ReduceOp, which is an enumerator or an object that has one."""
    kind = getattr(op, "op", op)
    name = str(kind).rsplit(".", maxsplit=1)[-1]
    if name == "PREMUL_SUM":
        factor = op.__getstate__()[1]
        if isinstance(factor, torch.Tensor):
            factor = factor.item()
        return PremulSum(factor)
    return ReduceOp[name]


def stacked(tensors):
    same = len({tensor.shape for tensor in tensors}) == 1
    return torch.stack(tensors) if same else tensors


def in_elements(tensor, splits):
    if not splits:
        return None
    if sum(splits) != tensor.size(0):
        raise ValueError(f"split sizes {list(splits)} do not add up to the {tensor.size(0)} "
                         "rows")
    row = memory.source(tensor).count // max(tensor.size(0), 1)  # Bytes if there is no arithmetic.
    return [split * row for split in splits]
