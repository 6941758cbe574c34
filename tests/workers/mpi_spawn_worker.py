# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An MPI program that spawns two copies of itself: `mpi_spawn_worker.py
[abort|kill|elsewhere|nested]`."""

import os
import signal
import sys

from mpi4py import MPI


def spawn(what, count, info=MPI.INFO_NULL):
    return MPI.COMM_WORLD.Spawn(sys.executable, args=[__file__, what, "a b=c"], maxprocs=count,
                                info=info)


def of_parent(what):
    rank = MPI.COMM_WORLD.Get_rank()
    if what == "elsewhere":
        info = MPI.Info.Create()
        info.Set("host", "no-such-host")
        try:
            spawn("", 2, info)
        except MPI.Exception as error:
            print(f"refused: {error}", flush=True)
        return
    child = spawn(what, 2)
    heard = child.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
    child.Disconnect()
    if rank == 0:
        print("parent heard", *heard, flush=True)


def of_child(what, parent):
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    if rank == 1 and what == "abort":
        world.Abort(7)
    if rank == 1 and what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "nested":
        child = spawn("", 1)
        child.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
        child.Disconnect()
    print(f"child {rank} of {size}, RANK={os.environ.get('RANK')}", flush=True)
    parent.gather(f"{rank}/{size}/{sys.argv[2]}/{os.environ.get('MASTER_PORT')}", root=0)
    parent.Disconnect()


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    parent = MPI.Comm.Get_parent()
    if parent == MPI.COMM_NULL:
        of_parent(what)
    else:
        of_child(what, parent)


main()
