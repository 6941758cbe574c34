# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""How the ranks of a group of torch meet: at torch's store."""

import collections
import socket

import torch.distributed as dist

from .process_group import ProcessGroup

_names = collections.Counter()  # By (url, name): how often this process has made such a group.


def meet(store, rank, size, name, timeout):
    """Returns hlaunch's group of this name, and a store to keep alive, or None."""
    url, opened = store_url(store, rank, timeout)
    again = _names[url, name]
    _names[url, name] += 1
    return ProcessGroup(url, rank, size, f"{name}.{again}", timeout), opened


def store_url(store, rank, timeout):
    """Returns the URL of the store for hlaunch's ranks, and a store to keep alive, or None.

    hlaunch uses a TCPStore of torch as it is, over its own connections. For any other store, rank 0
    opens a TCPStore and writes its address to torch's store.
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
    """Returns the address from which this host reaches others; sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"
