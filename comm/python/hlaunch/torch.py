# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's collectives as a backend of torch.distributed, for tensors on the CPU:

    import hlaunch.torch
    torch.distributed.init_process_group("hlaunch")

Where the package is installed with its metadata, torch 2.5 and later know the backend in hlaunch's
workers without the import. Needs torch 2.2 or later.
"""

import collections
import hashlib
import socket
import sys

import torch
import torch.distributed as dist

from .process_group import ProcessGroup

if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 2):
    raise ImportError(f"hlaunch.torch needs torch 2.2 or later, this is {torch.__version__}: its "
                      "store speaks an older protocol")

from .torch_group import TorchGroup  # It needs what that torch has.

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


register()
