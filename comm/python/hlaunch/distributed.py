# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""torch.distributed's verbs with the same names and arguments, for all data that memory.py accepts.
`src` and `dst` are ranks of the default group, even if a `group` is given; `group_src` and
`group_dst` are ranks of the group."""

from . import memory
from .groups import NON_GROUP_MEMBER, of, root_of
from .process_group import ANY_RANK, FOR_COMPLEX, PremulSum, ReduceOp


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return of(group).all_reduce(tensor, op, async_op=async_op)


def broadcast(tensor, src=None, group=None, async_op=False,
              group_src=None):
    if group is not NON_GROUP_MEMBER:
        group = of(group)
        return group.broadcast(tensor, root_of(group, src, group_src, "src"), async_op=async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False,
           group_dst=None):
    if group is not NON_GROUP_MEMBER:
        group = of(group)
        return group.reduce(tensor, root_of(group, dst, group_dst, "dst"), op, async_op=async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return of(group).all_gather(tensor_list, tensor, async_op=async_op)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return of(group).all_gather_into(output_tensor, input_tensor, async_op=async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False,
           group_dst=None):
    if group is not NON_GROUP_MEMBER:
        group = of(group)
        return group.gather(tensor, gather_list, root_of(group, dst, group_dst, "dst"), async_op=async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False,
            group_src=None):
    if group is not NON_GROUP_MEMBER:
        group = of(group)
        return group.scatter(tensor, scatter_list, root_of(group, src, group_src, "src"), async_op=async_op)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return of(group).reduce_scatter(output, input_list, op, async_op=async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return of(group).reduce_scatter_from(output, input, op, async_op=async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return of(group).all_to_all(output_tensor_list, input_tensor_list, async_op=async_op)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None,
                      async_op=False):
    """The split sizes count along the first dimension, as torch's do."""
    if group is not NON_GROUP_MEMBER:
        return of(group).all_to_all_single(
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


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """`device_ids` is for GPUs: a list is accepted, as in torch, and has no effect."""
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError(f"device_ids is a {type(device_ids).__name__}, not a list")
    if group is not NON_GROUP_MEMBER:
        return of(group).barrier(async_op, timeout)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that names all ranks that did not come, even without `wait_all_ranks`."""
    if group is not NON_GROUP_MEMBER:
        of(group).monitored_barrier(timeout)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _all_of([of(group).all_reduce(tensor, op, async_op=True) for tensor in tensors],
                       async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    if group is not NON_GROUP_MEMBER:
        return _all_of([of(group).all_gather(outputs, given, async_op=True)
                        for outputs, given in zip(output_tensor_lists, input_tensor_list)],
                       async_op)


def _all_of(works, async_op):
    works = Works(works)
    return works if async_op else works.wait() and None


class Works:
    """Several calls as one Work."""

    def __init__(self, works):
        self._works = works

    def wait(self, timeout=None):
        return all(work.wait(timeout) for work in self._works)

    def is_completed(self):
        return all(work.is_completed() for work in self._works)


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    if group is not NON_GROUP_MEMBER:
        group = of(group)
        return group.isend(tensor, root_of(group, dst, group_dst, "dst"), tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """`src` None means the first other rank that sends; Work.source_rank() returns it."""
    if group is not NON_GROUP_MEMBER:
        group = of(group)
        source = (ANY_RANK if src is None and group_src is None
                  else root_of(group, src, group_src, "src"))
        return group.irecv(tensor, source, tag)


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    if group is not NON_GROUP_MEMBER:
        isend(tensor, dst, group, tag, group_dst).wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Returns the rank that sent."""
    if group is NON_GROUP_MEMBER:
        return -1
    return of(group).ranks[irecv(tensor, src, group, tag, group_src).source_rank()]


class P2POp:
    """A send or a receive of a batch: `op` is isend or irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError("op must be hlaunch.isend or hlaunch.irecv")
        self.op, self.tensor, self.group, self.tag = op, tensor, of(group), tag
        self.group_peer = root_of(self.group, peer, group_peer, "peer")
        self.peer = self.group.ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list):
    """Starts all of them, whatever the order of sends and receives; returns their Works."""
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("p2p_op_list must be a list of P2POp that is not empty")
    if len({id(each.group) for each in p2p_op_list}) > 1:
        raise ValueError("p2p_op_list has operations of several groups")
    receives = [each.group.irecv(each.tensor, each.group_peer, each.tag) if each.op is irecv else None
                for each in p2p_op_list]
    return [work or each.group.isend(each.tensor, each.group_peer, each.tag)
            for each, work in zip(p2p_op_list, receives)]


def supports_complex(reduce_op):
    """Whether complex numbers can be reduced with this operation."""
    return reduce_op in FOR_COMPLEX or isinstance(reduce_op, PremulSum)


# torch's names since 2.13.
all_gather_single = all_gather_into_tensor
reduce_scatter_single = reduce_scatter_tensor
