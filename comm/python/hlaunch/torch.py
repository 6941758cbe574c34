# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's collectives as a backend of torch.distributed, for tensors on the CPU:

    import hlaunch.torch
    torch.distributed.init_process_group("hlaunch")

Where the package is installed with its metadata, torch 2.5 and later know the backend in hlaunch's
workers without the import. Needs torch 2.2 or later.
"""

import collections
import datetime
import hashlib
import queue
import socket
import sys
import threading

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from .process_group import ANY_RANK, PremulSum, ProcessGroup, ReduceOp

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 2):
    raise ImportError(f"hlaunch.torch needs torch 2.2 or later, this is {torch.__version__}: its "
                      "store speaks an older protocol")

# How long rank 0 waits for the other ranks when it leaves a group.
LEAVE_TIMEOUT = datetime.timedelta(seconds=5)
_names = collections.Counter()  # How often this process has made a group of a name at a store.


def register():
    """Makes the backend known to torch.distributed; see hlaunch_autoload."""
    if dist.is_available() and "HLAUNCH" not in dist.Backend._plugins:
        dist.Backend.register_backend("hlaunch", create, extended_api=True, devices=["cpu"])


def create(options, _=None):
    """Makes a group; torch calls it."""
    refuse_mixed(sys._getframe(1).f_locals.get("backend_config"))
    url, opened = store_url(options.store, options.group_rank, options.timeout)
    ranks = ",".join(str(rank) for rank in options.global_ranks_in_group)
    name = f"torch/{options.group_id}/{hashlib.sha256(ranks.encode()).hexdigest()[:16]}"
    again = _names[url, name]
    _names[url, name] += 1
    group = ProcessGroup(url, options.group_rank, options.group_size, f"{name}.{again}",
                         options.timeout)
    return TorchGroup(group, options.store, opened)


def refuse_mixed(config):
    """Refuses other backends beside this one: torch uses a process group written in Python for all
    devices and drops the others silently."""
    if config is None:
        return
    others = {device: str(backend) for device, backend in config.get_device_backend_map().items()
              if str(backend) != "hlaunch" or device != "cpu"}
    if others:
        dropped = ",".join(f"{device}:{backend}" for device, backend in others.items())
        raise ValueError(
            f"backend {str(config)!r}: torch would drop {dropped!r} silently. Give 'hlaunch' "
            "alone, which serves tensors on the CPU, and make a group for the others: "
            "new_group(backend=...)")


def store_url(store, rank, timeout):
    """Returns the url of the store for hlaunch's ranks, and a store to keep alive, or None.

    A TCPStore of torch is used as it is, over connections of hlaunch's own. For any other store
    rank 0 opens a TCPStore and writes its address to torch's store.
    """
    tcp = store
    while isinstance(tcp, dist.PrefixStore):
        tcp = tcp.underlying_store
    opened = None
    if not isinstance(tcp, dist.TCPStore):
        if rank == 0:
            opened = dist.TCPStore(own_address(), 0, None, True, timeout, wait_for_workers=False)
            store.set("hlaunch/store", f"{opened.host}|{opened.port}")
        host, port = store.get("hlaunch/store").decode().split("|")
    else:
        host, port = tcp.host, tcp.port
    host = f"[{host}]" if ":" in host else host
    return f"tcp://{host}:{port}?store=open", opened


def own_address():
    """Returns the address by which this host reaches others; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


class TorchWork(dist.Work):
    """One or several calls that are under way; `result` is the value that torch gets."""

    def __init__(self, group, works, result):
        super().__init__()
        self._group, self._works, self._result = group, works, result
        self._future = None

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
        if self._future is None:
            self._future = torch.futures.Future()
            if self._works:
                self._group.complete(self)
            else:
                self._future.set_result(self._result)
        return self._future

    def complete(self):
        """Waits, then sets the future. Runs on a thread of the group."""
        try:
            self.wait()
            self._future.set_result(self._result)
        except Exception as error:  # Any error belongs to the future.
            self._future.set_exception(error)


class TorchGroup(dist.ProcessGroup):
    """A process group for torch over one of hlaunch's. The methods have the names by which torch, in
    Python and in C++, calls them."""

    def __init__(self, group, store, opened=None):
        super().__init__(group.rank(), group.size())
        self._group, self._store, self._opened = group, store, opened
        self._name = self._desc = ""
        self._futures = None

    # ---- Names.

    def getBackendName(self):
        return "hlaunch"

    def getGroupName(self):
        return self._name

    def setGroupName(self, name):
        self._name = name

    def getGroupDesc(self):
        return self._desc

    def setGroupDesc(self, desc):
        self._desc = desc

    _set_group_name, _set_group_desc = setGroupName, setGroupDesc
    group_name = property(getGroupName)
    group_desc = property(getGroupDesc)

    @property
    def _device_types(self):
        return [torch.device("cpu")]

    def _get_backend(self, _):
        return self

    def _get_backend_name(self):
        return "hlaunch"

    def __repr__(self):
        return f"hlaunch.torch.TorchGroup(rank {self.rank()} of {self.size()}, {self._name!r})"

    def shutdown(self):
        if self._futures is not None:
            self._futures.put(None)
            self._futures = None
        self._group.destroy()
        if self._store is not None:
            self._leave(self._store)
        self._store = self._opened = None

    def _leave(self, store):
        """Rank 0 waits for the others: the store may be in its process, and they may still need it."""
        try:
            if store.add("hlaunch/left", 1) == self.size():
                store.set("hlaunch/left/all", "")
            if self.rank() == 0:
                store.wait(["hlaunch/left/all"], LEAVE_TIMEOUT)
        except RuntimeError:  # The store is gone, or a rank did not leave in time.
            pass

    def abort(self):
        self._group.abort("abort() was called")

    def complete(self, work):
        """Sets the future of `work` at its end. The first future starts the thread."""
        if self._futures is None:
            self._futures = queue.SimpleQueue()
            threading.Thread(target=complete_all, args=(self._futures,), daemon=True,
                             name="hlaunch-futures").start()
        self._futures.put(work)

    # ---- Verbs.

    def _run(self, opts, calls, result):
        """`calls` are functions that take async_op and timeout."""
        how = {"async_op": len(calls) > 1 or getattr(opts, "asyncOp", True)}
        timeout = getattr(opts, "timeout", None)
        if timeout is not None and timeout > datetime.timedelta(0):
            how["timeout"] = timeout
        works = [work for work in [call(**how) for call in calls] if work is not None]
        return TorchWork(self, works, result)

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
        """`outputs` has a list for each input."""
        return self._run(opts, [lambda o=o, i=i, **how: self._group.all_gather(o, i, **how)
                                for o, i in zip(outputs, inputs)], outputs)

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
        self._group.monitored_barrier(timeout)

    def send(self, tensors, to, tag=0):
        return TorchWork(self, [self._group.isend(tensors[0], to, tag)], tensors)

    def recv(self, tensors, source, tag=0):
        return TorchWork(self, [self._group.irecv(tensors[0], source, tag)], tensors)

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, ANY_RANK, tag)

    # The names before torch 2.13.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single


def complete_all(works):
    for work in iter(works.get, None):
        work.complete()


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


def in_elements(tensor, splits):
    if not splits:
        return None
    if sum(splits) != tensor.size(0):
        raise ValueError(f"split sizes {list(splits)} do not add up to the {tensor.size(0)} "
                         "rows")
    row = tensor[0].numel() if tensor.size(0) else 0
    return [split * row for split in splits]


register()
