# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A program with hlaunch's collectives: `comm_and_mpi_worker.py mpi` uses mpi4py at the same time,
`comm_and_mpi_worker.py URL` makes a group by that URL, without mpi4py."""

import array
import sys

import hlaunch

TIMES = 20


def total_of(numbers):
    hlaunch.all_reduce(numbers)
    return numbers[0]


def beside_mpi():
    from mpi4py import MPI
    hlaunch.init_process_group()
    world = MPI.COMM_WORLD
    assert (hlaunch.get_rank(), hlaunch.get_world_size()) == (world.Get_rank(), world.Get_size())
    for turn in range(TIMES):
        ours = array.array("q", [world.Get_rank() + turn])
        work = hlaunch.all_reduce(ours, async_op=True)
        theirs = world.allreduce(world.Get_rank() + turn)
        work.wait()
        assert ours[0] == theirs, (ours[0], theirs)


def alone(url):
    hlaunch.init_process_group(init_method=url)
    for turn in range(TIMES):
        expected = sum(rank + turn for rank in range(hlaunch.get_world_size()))
        assert total_of(array.array("q", [hlaunch.get_rank() + turn])) == expected


if sys.argv[1] == "mpi":
    beside_mpi()
else:
    alone(sys.argv[1])
print(f"group rank {hlaunch.get_rank()} of {hlaunch.get_world_size()}", flush=True)
hlaunch.destroy_process_group()
