# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The default group and groups made from it, with torch.distributed's names and rules."""

import atexit
import collections
import datetime
import os

from .process_group import ProcessGroup

default_pg_timeout = datetime.timedelta(minutes=30)
_names = collections.Counter()
# new_group returns this at a rank that is not in the group; every verb does nothing with it.
NON_GROUP_MEMBER = object()


class GroupMember:
    """torch's name for the default group and for a group that this rank is not in."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER
    WORLD = None  # The default group, while there is one.


group = GroupMember  # torch's other name for it.
_groups = []  # Made by new_group.


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1,
                       store=None, group_name="", pg_options=None, device_id=None):
    """Makes the default group: from the environment that hlaunch or torchrun sets; from
    `init_method`: tcp://HOST:PORT, file:///PATH or pmi://; or over a `store` of torch, a
    TCPStore."""
    check_backend(backend, pg_options, device_id)
    if GroupMember.WORLD is not None:
        raise RuntimeError("the default group exists already; call destroy_process_group() first")
    if store is not None:
        if init_method is not None:
            raise ValueError("give init_method or store, not both")
        if rank < 0 or world_size < 1:
            raise ValueError("a store says nothing of ranks: give rank and world_size as well")
        init_method = url_of(store)
    name = group_name or "default"
    # A store accepts each name once, and all ranks make the same number of calls.
    again = _names[name]
    _names[name] += 1
    GroupMember.WORLD = ProcessGroup(init_method or "env://", rank, world_size,
                                     f"{name}.{again}" if again else name, timeout)


def check_backend(backend, pg_options, device_id):
    if backend not in (None, "hlaunch", "cpu:hlaunch"):
        raise ValueError(f"backend {backend!r}: the only backend here is hlaunch; leave it out")
    if pg_options is not None:
        raise ValueError(f"pg_options {pg_options!r}: hlaunch has none; leave them out")
    if device_id is not None and str(device_id) != "cpu":
        raise ValueError(f"device_id {device_id!r}: hlaunch moves memory of the CPU; leave it out")


def url_of(store):
    """Returns the URL of a store of torch, below any prefix stores."""
    below = store
    while hasattr(below, "underlying_store"):
        below = below.underlying_store
    if not hasattr(below, "host") or not hasattr(below, "port"):
        raise ValueError(f"store: a {type(below).__name__} has no host and port; give a TCPStore, or "
                         "init_method='file:///PATH'")
    host = f"[{below.host}]" if ":" in below.host else below.host
    return f"tcp://{host}:{below.port}?store=open"


def is_initialized():
    return GroupMember.WORLD is not None


def destroy_process_group(group=None):
    """Leaves `group`, or all groups."""
    if group is NON_GROUP_MEMBER:
        return
    if group is not None and group is not GroupMember.WORLD:
        _groups.remove(group)
        group.destroy()
        return
    for each in reversed(_groups):
        each.destroy()
    _groups.clear()
    if GroupMember.WORLD is not None:
        GroupMember.WORLD.destroy()
    GroupMember.WORLD = None


atexit.register(destroy_process_group)  # So the other ranks learn that this one left, not that it died.


def of(group):
    """Returns `group`, or the default one for None."""
    if group is not None:
        return group
    if GroupMember.WORLD is None:
        raise RuntimeError("there is no group yet: call hlaunch.init_process_group() first")
    return GroupMember.WORLD


def new_group(ranks=None, timeout=None, backend=None, pg_options=None,
              use_local_synchronization=False, group_desc=None, device_id=None, sort_ranks=True):
    """Makes a group of some ranks, or of all; every rank of the default group must call it. As in
    torch, ranks are numbered in the order of their numbers in the default group, or in the order of
    the list if `sort_ranks` is false."""
    check_backend(backend, pg_options, device_id)
    if use_local_synchronization:
        raise ValueError("use_local_synchronization: every rank must call new_group here, as the "
                         "groups are told apart by how many were made before")
    ranks = list(range(of(None).size()) if ranks is None else ranks)
    made = of(None).new_group(sorted(ranks) if sort_ranks else ranks, timeout)
    if made is None:
        return NON_GROUP_MEMBER
    made.group_desc = group_desc or "undefined"
    _groups.append(made)
    return made


def new_subgroups(group_size, group=None, timeout=None, backend=None, pg_options=None,
                  group_desc=None):
    """Returns this rank's group of `group_size` neighbours, and all such groups."""
    ranks = get_process_group_ranks(group)
    if group_size < 1 or len(ranks) % group_size != 0:
        raise ValueError(f"group_size {group_size} does not divide the {len(ranks)} ranks")
    return new_subgroups_by_enumeration(
        [ranks[at:at + group_size] for at in range(0, len(ranks), group_size)], timeout, backend,
        pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None,
                                 pg_options=None, group_desc=None):
    """Returns this rank's group, or None, and all groups; no rank may be in two."""
    if not ranks_per_subgroup_list:
        raise ValueError("ranks_per_subgroup_list is empty")
    everyone = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    twice = sorted(rank for rank, count in collections.Counter(everyone).items() if count > 1)
    if twice:
        raise ValueError(f"ranks {twice} are in more than one group")
    made = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
            for ranks in ranks_per_subgroup_list]
    return next((each for each in made if each is not NON_GROUP_MEMBER), None), made


def get_rank(group=None):
    """Returns -1 if this rank is not in the group."""
    return -1 if group is NON_GROUP_MEMBER else of(group).rank()


def get_world_size(group=None):
    return -1 if group is NON_GROUP_MEMBER else of(group).size()


def get_backend(group=None):
    of(group)
    return "hlaunch"


def get_backend_config(group=None):
    of(group)
    return "cpu:hlaunch"


def get_process_group_ranks(group=None):
    """Returns the ranks of the group as numbers in the default group, in their order."""
    return list(of(group).ranks)


def get_global_rank(group, group_rank):
    ranks = get_process_group_ranks(group)
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"group_rank {group_rank} is not in the group of ranks {ranks}")
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    return within(of(group), global_rank, "global_rank")


def within(group, rank, what):
    """Returns the rank in `group` of a rank of the default group."""
    if rank not in group.ranks:
        raise ValueError(f"{what} {rank} is not in the group of ranks {group.ranks}")
    return group.ranks.index(rank)


def root_of(group, rank, group_rank, what, default=0):
    """Returns the rank in `group` that `rank`, of the default group, or `group_rank` names."""
    if group_rank is None:
        return within(group, default if rank is None else rank, what)
    if rank is not None:
        raise ValueError(f"give {what} or group_{what}, not both")
    if not 0 <= group_rank < group.size():
        raise ValueError(f"group_{what} {group_rank}: the group has {group.size()} ranks")
    return group_rank


def get_node_local_rank(fallback_rank=None):
    """Returns LOCAL_RANK from the environment."""
    local = os.environ.get("LOCAL_RANK")
    if local is not None:
        return int(local)
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not set: start this program by hlaunch or torchrun, or give "
                           "fallback_rank")
    return int(fallback_rank)


def get_pg_count():
    """Returns the number of groups that this rank is in."""
    return len(_groups) + is_initialized()


def is_available():
    return True


def is_backend_available(backend):
    return backend.lower() == "hlaunch"


def is_torchelastic_launched():
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None
