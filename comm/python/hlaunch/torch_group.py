# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's group as torch's ProcessGroup."""

import torch
import torch.distributed as dist

from .torch_verbs import Verbs


class TorchGroup(Verbs, dist.ProcessGroup):
    """A process group for torch over one of hlaunch's, for all devices."""

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

    def __repr__(self):
        return f"hlaunch.torch.TorchGroup(rank {self.rank()} of {self.size()}, {self._name!r})"
