#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch's own collectives, without PyTorch or NumPy: every rank ends with the sum of all.

    hlaunch --nproc-per-node 4 deploy/examples/all_reduce.py

Needs the Python package: PYTHONPATH=build/python, or the folder of `cmake --install`.
"""

import array

import hlaunch


def main():
    hlaunch.init_process_group()  # From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
    rank, size = hlaunch.get_rank(), hlaunch.get_world_size()

    mine = array.array("d", [rank + 1, 10 * (rank + 1)])
    work = hlaunch.all_reduce(mine, async_op=True)
    # Work that needs the sum waits here; other work can go on meanwhile.
    work.wait()
    total = size * (size + 1) / 2
    assert list(mine) == [total, 10 * total], list(mine)

    best = hlaunch.new_group(range(size - size // 2, size))  # Every rank calls this.
    name = bytearray(f"rank {rank:3d}".encode())
    hlaunch.broadcast(name, src=size - 1, group=best)
    hlaunch.barrier()
    if rank == size - 1:
        print(f"OK: {size} ranks, sum {total:g}; the upper half heard of {name.decode()}",
              flush=True)
    hlaunch.destroy_process_group()


if __name__ == "__main__":
    main()
