# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""torch.distributed's functions with the same names and arguments, for all data that memory.py
accepts. `src` and `dst` are ranks of the default group, also where a `group` is given."""

import atexit
import collections

from . import memory
from .process_group import ANY_RANK, ProcessGroup, ReduceOp

_default = None
_groups = []  # Made by new_group.
_names = collections.Counter()
# new_group returns it at a rank that is not in the group; every verb does nothing with it.
NON_GROUP_MEMBER = object()


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1,
                       group_name=""):
    """Makes the default group: from the environment that hlaunch or torchrun sets, or from
    `init_method`: tcp://HOST:PORT or file:///PATH."""
    global _default
    if backend not in (None, "hlaunch"):
        raise ValueError(f"backend {backend!r}: the only backend here is hlaunch; leave it out")
    if _default is not None:
        raise RuntimeError("the default group exists already; call destroy_process_group() first")
    name = group_name or "default"
    # A store accepts each name once, and all ranks make the same number of calls.
    again = _names[name]
    _names[name] += 1
    _default = ProcessGroup(init_method or "env://", rank, world_size,
                            f"{name}.{again}" if again else name, timeout)


def is_available():
    return True


def is_initialized():
    return _default is not None


def destroy_process_group(group=None):
    """Leaves `group`, or all groups."""
    global _default
    if group is not None and group is not _default:
        _groups.remove(group)
        group.destroy()
        return
    for each in reversed(_groups):
        each.destroy()
    _groups.clear()
    if _default is not None:
        _default.destroy()
    _default = None


atexit.register(destroy_process_group)  # So the other ranks learn that this one left, not that it died.


def new_group(ranks=None, timeout=None):
    """Makes a group of some ranks, or of all; every rank of the default group must call it."""
    group = _of(None).new_group(list(range(get_world_size()) if ranks is None else ranks), timeout)
    if group is None:
        return NON_GROUP_MEMBER
    _groups.append(group)
    return group


def get_rank(group=None):
    """Returns -1 if this rank is not in the group."""
    return -1 if group is NON_GROUP_MEMBER else _of(group).rank()


def get_world_size(group=None):
    return -1 if group is NON_GROUP_MEMBER else _of(group).size()


def _of(group):
    if group is not None:
        return group
    if _default is None:
        raise RuntimeError("there is no group yet: call hlaunch.init_process_group() first")
    return _default


def _within(group, rank, what):
    """Returns the rank in `group` of a rank of the default group."""
    if rank not in group.ranks:
        raise ValueError(f"{what} {rank} is not in the group of ranks {group.ranks}")
    return group.ranks.index(rank)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).all_reduce(tensor, op, async_op=async_op)


def broadcast(tensor, src=0, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        group = _of(group)
        return group.broadcast(tensor, _within(group, src, "src"), async_op=async_op)


def reduce(tensor, dst=0, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        group = _of(group)
        return group.reduce(tensor, _within(group, dst, "dst"), op, async_op=async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).all_gather(tensor_list, tensor, async_op=async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).all_gather_into(output_tensor, input_tensor, async_op=async_op)


def gather(tensor, gather_list=None, dst=0, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        group = _of(group)
        return group.gather(tensor, gather_list, _within(group, dst, "dst"), async_op=async_op)


def scatter(tensor, scatter_list=None, src=0, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        group = _of(group)
        return group.scatter(tensor, scatter_list, _within(group, src, "src"), async_op=async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).reduce_scatter(output, input_list, op, async_op=async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).reduce_scatter_from(output, input, op, async_op=async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).all_to_all(output_tensor_list, input_tensor_list, async_op=async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None,
                      async_op=False):
    """The split sizes count along the first dimension, as torch's do."""
    if group is not NON_GROUP_MEMBER:
        return _of(group).all_to_all_single(
            output, input, _elements(output, output_split_sizes, "output_split_sizes"),
            _elements(input, input_split_sizes, "input_split_sizes"), async_op=async_op)


def _elements(thing, splits, what):
    if splits is None or len(splits) == 0:
        return None
    count = memory.source(thing).count
    rows = len(thing)
    if sum(splits) != rows:
        raise ValueError(f"{what} {list(splits)} add up to {sum(splits)}, but there are {rows} rows")
    return [split * (count // max(rows, 1)) for split in splits]


def barrier(group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _of(group).barrier(async_op)


def monitored_barrier(group=None, timeout=None):
    """A barrier that names the ranks that did not come."""
    if group is not NON_GROUP_MEMBER:
        _of(group).monitored_barrier(timeout)


def isend(tensor, dst, group=None, tag=0):
    if group is not NON_GROUP_MEMBER:
        group = _of(group)
        return group.isend(tensor, _within(group, dst, "dst"), tag)


def irecv(tensor, src=None, group=None, tag=0):
    """`src` None: receives from the first rank that sends; Work.source_rank() returns it."""
    if group is not NON_GROUP_MEMBER:
        group = _of(group)
        return group.irecv(tensor, ANY_RANK if src is None else _within(group, src, "src"), tag)


def send(tensor, dst, group=None, tag=0):
    if group is not NON_GROUP_MEMBER:
        isend(tensor, dst, group, tag).wait()


def recv(tensor, src=None, group=None, tag=0):
    """Returns the rank that sent."""
    if group is NON_GROUP_MEMBER:
        return -1
    group = _of(group)
    return group.ranks[irecv(tensor, src, group, tag).source_rank()]
