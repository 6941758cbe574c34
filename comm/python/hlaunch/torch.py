# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's collectives as a backend of torch.distributed, for tensors on the CPU:

    import hlaunch.torch
    torch.distributed.init_process_group("hlaunch")

If the package is installed with its metadata, torch 2.5 and later know the backend in hlaunch's
workers without the import. Needs torch 2.2 or later.
"""

import hashlib
import sys

import torch
import torch.distributed as dist

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 2):
    raise ImportError(f"hlaunch.torch needs torch 2.2 or later, this is {torch.__version__}: its "
                      "store speaks an older protocol")

from .torch_group import TorchBackend, TorchGroup, can_mix, make  # These modules need torch 2.2.


def register():
    """Makes the backend known to torch.distributed; see hlaunch_autoload."""
    if dist.is_available() and "HLAUNCH" not in dist.Backend._plugins:
        dist.Backend.register_backend("hlaunch", create, extended_api=True, devices=["cpu"])


def create(options, _=None):
    """Makes a group; torch calls it."""
    others = beside(sys._getframe(1).f_locals.get("backend_config"))
    ranks = ",".join(str(rank) for rank in options.global_ranks_in_group)
    name = f"torch/{options.group_id}/{hashlib.sha256(ranks.encode()).hexdigest()[:16]}"
    return make(TorchBackend if others else TorchGroup, options.store, options.group_rank,
                options.group_size, name, options.timeout)


def beside(config):
    """Returns the other backends of a group by device. Refuses backends that torch would drop
    silently, and devices that hlaunch cannot serve."""
    devices = {} if config is None else config.get_device_backend_map()
    ours = [device for device, backend in devices.items() if str(backend) == "hlaunch"]
    others = {device: str(backend) for device, backend in devices.items() if device not in ours}
    wrong = [device for device in ours if device != "cpu"]
    listed = ",".join(f"{device}:{backend}" for device, backend in others.items())
    if wrong:
        raise ValueError(f"backend {str(config)!r}: hlaunch serves tensors on the CPU, not on "
                         f"{' and '.join(wrong)}; give cpu:hlaunch, and others their own backend")
    if others and not can_mix():
        # torch uses a process group written in Python for all devices.
        raise ValueError(
            f"backend {str(config)!r}: torch {torch.__version__} would drop {listed!r} silently; "
            "torch 2.14 and later can mix. Give 'hlaunch' alone, which serves tensors on the CPU, "
            "and make a group for the others: new_group(backend=...)")
    custom = dist.ProcessGroup.BackendType.CUSTOM
    plugins = {backend for backend in others.values()
               if dist.Backend.backend_type_map.get(backend, custom) == custom}
    if plugins:
        raise ValueError(
            f"backend {str(config)!r}: torch takes {' and '.join(sorted(plugins))} and hlaunch, "
            "which are both plugins, for one and the same, and would give all tensors to the first. "
            "Make a group for each: new_group(backend=...)")
    return others


register()
