#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures how long torchrun's c10d rendezvous takes for N nodes on this machine.

    torch_rendezvous.py NODES

The store and every node are processes of their own, all forked from this one, so that no figure
includes the import of torch. Prints one line of JSON once all nodes have their rank.
"""

import json
import os
import resource
import sys
import time

from torch.distributed import TCPStore
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler


def cpu_ms():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def serve(port_to, until):
    """The process of the store: writes its port, and its cost once it is told to end."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    os.write(port_to, f"{store.port}\n".encode())
    before = cpu_ms()
    os.read(until, 1)
    os.write(port_to, f"{cpu_ms() - before}\n".encode())
    os._exit(0)


def join(port, nodes, index, start, done):
    """One node, from before its connection until its rank is known."""
    parameters = RendezvousParameters(
        backend="c10d", endpoint=f"127.0.0.1:{port}", run_id="bench", min_nodes=nodes,
        max_nodes=nodes, local_addr="127.0.0.1", is_host="false")
    os.read(start, 1)
    backend, store = create_backend(parameters)
    info = create_handler(store, backend, parameters).next_rendezvous()
    os.write(done, f"{info.rank}\n".encode())
    time.sleep(3600)  # It keeps its place until it is killed.


def fork(function, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments)
        finally:
            os._exit(1)
    return pid


def main():
    nodes = int(sys.argv[1])
    told, tell = os.pipe()
    ended, end = os.pipe()
    server = fork(serve, tell, ended)
    answers = os.fdopen(told)
    port = int(answers.readline())
    start, go = os.pipe()
    ready, done = os.pipe()
    members = [fork(join, port, nodes, index, start, done) for index in range(nodes)]
    os.close(done)
    time.sleep(1)  # Until all wait for the start; this is not measured.
    began = time.monotonic()
    os.write(go, b"x" * nodes)
    ranks = os.fdopen(ready)
    seen = {int(ranks.readline()) for _ in range(nodes)}
    took = time.monotonic() - began
    assert seen == set(range(nodes)), seen
    os.write(end, b"x")
    cost = float(answers.readline())
    for pid in members:
        os.kill(pid, 9)
    for pid in [*members, server]:
        os.waitpid(pid, 0)
    print(json.dumps({"assigned_s": took, "server_cpu_ms": cost}))


if __name__ == "__main__":
    main()
