#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A program that starts its ranks itself, two on each node, with torch.multiprocessing. The ranks
meet:

    tutorial   at tcp://127.0.0.1:29500, as in the tutorial of torch.distributed
    chosen     at an address and a port that the program writes into the environment
    given      at the MASTER_ADDR and MASTER_PORT that it got
    none       it starts none, and is itself the rank that its environment names
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LIMIT = datetime.timedelta(seconds=100)


def check():
    total = torch.ones(1)
    dist.all_reduce(total)
    assert total.item() == dist.get_world_size(), total
    os.write(1, f"OK: rank {dist.get_rank()} of {dist.get_world_size()}\n".encode())
    dist.barrier()
    os._exit(0)  # torch may abort as Python ends (pytorch issue 190489).


def run(local_rank, form, first, world):
    method = "tcp://127.0.0.1:29500" if form == "tutorial" else "env://"
    if form == "chosen":
        os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="12355")
    dist.init_process_group("gloo", init_method=method, rank=first + local_rank, world_size=world,
                            timeout=LIMIT)
    check()


def main():
    form = sys.argv[1]
    if form == "none":
        dist.init_process_group("gloo", timeout=LIMIT)
        check()
        return
    node, nodes = int(os.environ["NODE_RANK"]), int(os.environ["GROUP_WORLD_SIZE"])
    mp.spawn(run, args=(form, 2 * node, 2 * nodes), nprocs=2)


if __name__ == "__main__":
    main()
