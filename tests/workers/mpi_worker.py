# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""mpi_worker.c with mpi4py."""

import os
import signal
import socket
import sys


def number(name):
    return int(os.environ.get(name, "0"))


def in_groups(MPI, world):
    """Makes communicators from groups, without a parent communicator, twice under one name."""
    rank, size = world.Get_rank(), world.Get_size()
    everybody = world.Get_group()
    low, high = everybody.Incl(range(size // 2)), everybody.Incl(range(size // 2, size))
    own, other = (low, high) if rank < size // 2 else (high, low)
    for _ in range(2):
        alike = MPI.Intracomm.Create_from_group(own, "halves")
        between = MPI.Intercomm.Create_from_groups(own, 0, other, 0, "both")
        print(f"group sum {alike.allreduce(rank)}, the other one's {between.allreduce(rank)}",
              flush=True)
        between.Free()
        alike.Free()


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    fails = number("RANK") == 1 and number("TORCHELASTIC_RESTART_COUNT") == 0
    last = number("GROUP_RANK") == number("GROUP_WORLD_SIZE") - 1
    if what == "exit-before-init" and last and (number("RANK") == 1
                                                or number("GROUP_WORLD_SIZE") > 1):
        return
    from mpi4py import MPI  # This is MPI_Init.
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    local = world.Split_type(MPI.COMM_TYPE_SHARED).Get_size()
    after = world.sendrecv(rank, dest=(rank + 1) % size, source=(rank - 1) % size)
    total = world.allreduce(rank)
    print(f"MPI rank {rank} of {size}, {local} here, after {after}, sum {total}, "
          f"on {socket.gethostname()}", flush=True)
    if what == "groups":
        in_groups(MPI, world)
    world.Barrier()
    if what == "abort" and fails:
        world.Abort(7)
    if what == "exit-before-finalize" and fails:
        os._exit(0)
    if what == "kill" and fails:
        os.kill(os.getpid(), signal.SIGKILL)
    world.Barrier()


main()
