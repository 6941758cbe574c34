#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank of a healthy job that stands still for a while, or seems to.

It does not know hlaunch."""

import datetime
import os
import signal
import socket
import subprocess
import sys
import time

MODE = sys.argv[1]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ODD = 2
SHORT, LONG = 22, 70  # Seconds: below and above the time after which a sleeping rank is suspected.


def end():
    print(f"{MODE}: done", flush=True)
    os._exit(0)


def no_torch():
    time.sleep(LONG)


if MODE == "no_torch":
    no_torch()
    end()

import torch
import torch.distributed as dist

value = torch.ones(4)


def no_group():
    time.sleep(LONG)


if MODE == "no_group":
    no_group()
    end()


def late_start():
    """A rank reads its data before it joins the others."""
    if RANK == ODD:
        time.sleep(LONG)


if MODE == "late_start":
    late_start()

dist.init_process_group(os.environ.get("PLANT_BACKEND", "gloo"), timeout=datetime.timedelta(seconds=300))


def steps(count):
    for _ in range(count):
        dist.all_reduce(value)


def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def short_steps():
    for _ in range(80):
        time.sleep(0.5)
        steps(1)


def compile_all():
    steps(5)
    work(LONG)
    steps(2)


def compile_one():
    steps(5)
    if RANK == ODD:
        work(LONG)
    steps(2)


def first_step():
    if RANK == ODD:
        time.sleep(LONG)
    steps(5)


def late_rank():
    steps(8)
    if RANK == ODD:
        time.sleep(SHORT)
    steps(2)


def slow_steps():
    steps(5)
    for _ in range(3):
        time.sleep(SHORT)
        steps(1)


def long_pause():
    """All ranks wait for something other than a rank."""
    steps(5)
    time.sleep(LONG)
    steps(2)


def checkpoint():
    """Rank 0 writes it to a slow disk."""
    steps(5)
    if RANK == 0:
        with open("checkpoint", "wb") as file:
            for _ in range(LONG):
                file.write(os.urandom(1 << 20))
                file.flush()
                os.fsync(file.fileno())
                time.sleep(0.9)
    dist.barrier()
    steps(2)


def quiet_checkpoint():
    """Another program writes it."""
    steps(5)
    if RANK == 0:
        subprocess.run(["sleep", str(SHORT)], check=True)
    dist.barrier()
    steps(2)


def validation():
    steps(5)
    if RANK == 0:
        for _ in range(LONG):
            torch.mm(torch.ones(200, 200), torch.ones(200, 200))
            work(1)
    steps(2)


def pipeline():
    """The stages take different times."""
    for _ in range(3):
        if RANK > 0:
            dist.recv(value, src=RANK - 1)
        time.sleep(SHORT if RANK == ODD else 0.1)
        if RANK + 1 < SIZE:
            dist.send(value, dst=RANK + 1)


def ring():
    """Ranks exchange only small messages."""
    for _ in range(160):
        if RANK == 0:
            time.sleep(0.25)
            dist.send(value, dst=1)
            dist.recv(value, src=SIZE - 1)
        else:
            dist.recv(value, src=RANK - 1)
            dist.send(value, dst=(RANK + 1) % SIZE)


def server():
    """One rank gives work to the others, and for a while there is none."""
    steps(5)
    for _ in range(2):
        if RANK == 0:
            time.sleep(LONG)
            for rank in range(1, SIZE):
                dist.send(value, dst=rank)
        else:
            dist.recv(value, src=0)


def debugger():
    steps(5)
    if RANK == ODD:
        subprocess.Popen(["gdb", "-p", str(os.getpid()), "-batch", "-ex", f"shell sleep {LONG}"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
        time.sleep(5)
    steps(2)


def all_stopped():
    steps(5)
    subprocess.Popen(["sh", "-c", f"sleep {LONG}; kill -CONT {os.getpid()}"])
    dist.barrier()
    os.kill(os.getpid(), signal.SIGSTOP)
    steps(2)


def two_groups():
    """Two halves work independently."""
    halves = [dist.new_group(range(SIZE // 2)), dist.new_group(range(SIZE // 2, SIZE))]
    steps(5)
    if RANK < SIZE // 2:
        for _ in range(80):
            dist.all_reduce(value, group=halves[0])
            time.sleep(0.5)
    else:
        work(40)
        dist.all_reduce(value, group=halves[1])
    steps(1)


def download():
    """One rank downloads from a slow server."""
    steps(5)
    if RANK == 0:
        listener = socket.create_server(("127.0.0.1", 0))
        if os.fork() == 0:
            peer = listener.accept()[0]
            for _ in range(LONG):
                peer.sendall(bytes(1 << 20))
                time.sleep(1)
            os._exit(0)
        client = socket.create_connection(listener.getsockname())
        listener.close()
        while client.recv(1 << 16):
            pass
    dist.barrier()
    steps(2)


def growing_steps():
    """Each step takes longer than the one before."""
    for seconds in (1, 2, 4, 8, 16, 32):
        if RANK == ODD:
            work(seconds)
        steps(1)
    time.sleep(SHORT)
    steps(1)


globals()[MODE]() if MODE != "late_start" else steps(5)
end()
