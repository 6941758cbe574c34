# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's group in torch's form: alone as a ProcessGroup, beside other backends as a Backend."""

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from .torch_meeting import meet
from .torch_verbs import Verbs

# torch's class for the part of a group that serves one kind of device; torch's main branch calls it
# BackendBase.
BackendBase = getattr(dist, "BackendBase", torch._C._distributed_c10d.Backend)


def can_mix():
    """Whether this torch supports a Backend written in Python, as 2.14 does."""
    try:
        BackendBase(0, 1)
    except TypeError:  # "No constructor defined!"
        return False
    return True


def make(form, store, rank, size, name, timeout):
    """Makes a group, which is a TorchGroup or a TorchBackend. Its ranks meet at torch's `store`."""
    group, opened = meet(store, rank, size, name, timeout)
    let_record(form is TorchBackend)
    return form(group, store, opened)


def let_record(possible):
    """torch 2.15 and later record the calls of a Backend. They cannot record those of a group that
    is written in Python, and do not try if its backend is said to record by itself."""
    by_themselves = getattr(c10d, "_FR_SELF_RECORDING_BACKENDS", set())
    (by_themselves.discard if possible else by_themselves.add)("hlaunch")


class TorchGroup(Verbs, dist.ProcessGroup):
    """A torch process group on top of one of hlaunch's, for all devices."""

    def __init__(self, group, store, opened=None):
        super().__init__(group.rank(), group.size())
        self.set_up(group, store, opened)
        self._name = self._desc = ""

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

    supports_splitting = True

    def get_group_store(self):
        return self._store

    def split_group(self, ranks, timeout=None, opts=None, group_name="", group_desc="",
                    device_types=None):
        """Makes a group of some ranks of this one; None if this rank is none of them."""
        del opts, device_types  # There are no options, and one kind of device.
        if self.rank() not in ranks:
            return None
        store = dist.PrefixStore(f"{group_name}/", self._store)
        part = make(TorchGroup, store, ranks.index(self.rank()), len(ranks), f"torch/{group_name}",
                    timeout or c10d.default_pg_timeout)
        part.setGroupName(group_name)
        part.setGroupDesc(group_desc or "")
        return part

    def __repr__(self):
        return f"hlaunch.torch.TorchGroup(rank {self.rank()} of {self.size()}, {self._name!r})"


def no(what):
    """A property that is false. A class that only inherits the property would make torch's look-up
    call itself without end."""
    return property(lambda self: False, doc=f"Whether it has {what}.")


class TorchBackend(Verbs, BackendBase):
    """The part of a torch group that serves tensors on the CPU, if can_mix().

    torch passes its Works on without their state: is_completed(), is_success() and source_rank() of
    the Works that torch returns know nothing; wait() and get_future() work.
    """

    def __init__(self, group, store, opened=None):
        BackendBase.__init__(self, group.rank(), group.size())
        self.set_up(group, store, opened)

    supports_splitting = no("split groups")
    supports_coalescing = no("calls that begin together")
    supports_time_estimate = no("estimates of time")
    supports_shrinking = no("groups that shrink")
    supports_reconfigure = no("groups that change")
    supports_window = no("windows of memory")

    @property
    def options(self):
        return BackendBase.Options("hlaunch")

    def _set_sequence_number_for_group(self):
        pass  # All ranks count from 0.

    def _get_sequence_number_for_group(self):
        return self.calls_begun()
