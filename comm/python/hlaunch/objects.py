# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""torch.distributed's collectives of Python objects. They are pickled, so use them only among ranks
that trust each other. Ranks exchange the sizes first, then the bytes."""

import array
import pickle

from . import distributed
from .groups import NON_GROUP_MEMBER, of, root_of

TAG = (1 << 63) - 1  # A tag that no user can send with: torch's tags have 31 bits.


def _pickled(objects):
    return [bytearray(pickle.dumps(each)) for each in objects]


def _sizes(pickles):
    return array.array("q", [len(each) for each in pickles])


def _room(sizes):
    return [bytearray(size) for size in sizes]


def _unpickled(data):
    return [pickle.loads(each) for each in data]


def all_gather_object(object_list, obj, group=None):
    """Fills `object_list` with one object for each rank of the group."""
    if group is NON_GROUP_MEMBER:
        return
    group = of(group)
    mine = _pickled([obj])
    sizes = array.array("q", [0] * group.size())
    group.all_gather_into(sizes, _sizes(mine))
    data = _room(sizes)
    group.all_gather(data, mine[0])
    object_list[:group.size()] = _unpickled(data)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Fills `object_gather_list` at `dst`."""
    if group is NON_GROUP_MEMBER:
        return
    group = of(group)
    root = root_of(group, dst, group_dst, "dst")
    mine = _pickled([obj])
    sizes = array.array("q", [0] * group.size())
    group.all_gather_into(sizes, _sizes(mine))
    if group.rank() != root:
        group.isend(mine[0], root, TAG).wait()
        return
    data = _room(sizes)
    data[root] = mine[0]
    works = [group.irecv(room, rank, TAG) for rank, room in enumerate(data)
             if rank != root]
    for work in works:
        work.wait()
    object_gather_list[:group.size()] = _unpickled(data)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Fills `object_list`, which has the same length on all ranks, with the objects of `src`."""
    if group is NON_GROUP_MEMBER:
        return
    group = of(group)
    root = root_of(group, src, group_src, "src")
    mine = _pickled(object_list) if group.rank() == root else []
    sizes = _sizes(mine) if mine else array.array("q", [0] * len(object_list))
    group.broadcast(sizes, root)
    data = mine or _room(sizes)
    for each in data:
        group.broadcast(each, root)
    if group.rank() != root:
        object_list[:] = _unpickled(data)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None,
                        group=None, group_src=None):
    """Puts the object that `src` has for this rank at the front of the output list."""
    if group is NON_GROUP_MEMBER:
        return
    group = of(group)
    root = root_of(group, src, group_src, "src")
    size, mine = array.array("q", [0]), None
    if group.rank() == root:
        mine = _pickled(scatter_object_input_list)
        if len(mine) != group.size():
            raise ValueError(f"scatter_object_input_list has {len(mine)} objects for {group.size()} "
                             "ranks")
    group.scatter(size, [array.array("q", [len(each)]) for each in mine] if mine else None, root)
    if mine is None:
        data = bytearray(size[0])
        group.irecv(data, root, TAG).wait()
    else:
        for rank, each in enumerate(mine):
            if rank != root:
                group.isend(each, rank, TAG).wait()
        data = mine[root]
    scatter_object_output_list[0] = pickle.loads(data)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None):
    if group is NON_GROUP_MEMBER:
        return
    data = _pickled(object_list)
    for each in [_sizes(data), *data]:
        distributed.send(each, dst, group, TAG, group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Fills `object_list`, which is as long as the sender's; returns the rank that sent."""
    if group is NON_GROUP_MEMBER:
        return -1
    sizes = array.array("q", [0] * len(object_list))
    source = distributed.recv(sizes, src, group, TAG, group_src)
    data = _room(sizes)
    for each in data:
        distributed.recv(each, source, group, TAG)
    object_list[:] = _unpickled(data)
    return source
