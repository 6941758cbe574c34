#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank that does what its argument says. After the first import of torch nothing in it knows of
hlaunch."""

import os
import pathlib
import sys

MODE = sys.argv[1]
TAP = os.environ.get("HLAUNCH_TAP", "")
if MODE == "tap-is-lost":
    os.environ["HLAUNCH_TAP"] = "/no such directory"

HERE = f"here{os.environ['TORCHELASTIC_RESTART_COUNT']}."  # All ranks have the same directory.


def come():
    pathlib.Path(HERE + os.environ["RANK"]).touch()


if MODE == "import" and os.environ["RANK"] == "2":
    come()
    os.read(os.pipe()[0], 1)

import torch.distributed as dist

if MODE.startswith("tap"):
    sockets = [name for name in os.listdir(TAP) if name != "python"] if TAP else []
    mine = f"{os.environ['RANK']}.{os.getpid()}"
    old = ", NCCL will warn" if "NCCL_ASYNC_ERROR_HANDLING" in os.environ else ""
    print(f"{MODE}: {'tapped' if mine in sockets else 'not tapped'}{old}", flush=True)
    sys.exit()

import ctypes
import datetime
import re
import signal
import time

import torch
from torch.utils.data import DataLoader, Dataset

come()
while len(list(pathlib.Path().glob(HERE + "*"))) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.05)  # So nobody waits for a rank that still imports torch.

dist.init_process_group(os.environ.get("BACKEND", "gloo"), timeout=datetime.timedelta(seconds=300))
RANK, SIZE = dist.get_rank(), dist.get_world_size()
LAST = SIZE - 1
value = torch.ones(4)


def steps(count):
    for _ in range(count):
        dist.all_reduce(value)


class Slow(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(300)


def sleep():
    steps(3)
    if RANK == LAST:
        time.sleep(300)
    steps(1)


def times_out():
    short = dist.new_group(timeout=datetime.timedelta(seconds=30), group_desc="short")
    steps(1)
    if RANK == LAST:
        time.sleep(300)
    dist.all_reduce(value, group=short)


def lock():
    steps(3)
    if RANK == LAST:
        ctypes.PyDLL(None).sleep(300)  # It does not release the interpreter.
    steps(1)


def regex():
    steps(3)
    if RANK == LAST:
        re.match(r"(a+)+$", "a" * 64 + "b")
    steps(1)


def stop():
    steps(3)
    if RANK == LAST:
        os.kill(os.getpid(), signal.SIGSTOP)
    steps(1)


def crossed():
    one, other = dist.new_group(group_desc="dp"), dist.new_group(group_desc="tp")
    steps(1)
    dist.all_reduce(value, group=other if RANK == LAST else one)


def left():
    """A child that the rank leaves behind keeps its connections open."""
    steps(3)
    if RANK == LAST:
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
    steps(1)


def ops():
    steps(1)
    if RANK == LAST:
        dist.broadcast(value, src=LAST - 1)
    dist.all_reduce(value)


def loader():
    steps(2)
    for _ in DataLoader(Slow(), num_workers=1) if RANK == LAST else ():
        pass
    steps(1)


def key():
    dist.distributed_c10d._get_default_store().get("nobody sets it")


def group():
    steps(1)
    if RANK != LAST:
        dist.new_group()
    steps(1)


def chain():
    """The first rank waits for the second, which waits for the last one in a group of two."""
    groups = [dist.new_group([0, 1]), dist.new_group([1, 2])]
    steps(3)
    if RANK == LAST:
        time.sleep(300)
    if RANK > 0:
        dist.all_reduce(value, group=groups[1])
    steps(1)


def receive():
    """Each rank waits for the next one, and none sends."""
    steps(1)
    dist.recv(value, src=(RANK + 1) % SIZE)


def message():
    """The last rank does not send what the one before it receives, which another waits for."""
    steps(1)
    if RANK == LAST:
        time.sleep(300)
    dist.recv(value, src=RANK + 1)


def ring():
    """All is well: the ranks exchange nothing but small messages."""
    for _ in range(60):
        if RANK == 0:
            time.sleep(0.25)
            dist.send(value, dst=1)
            dist.recv(value, src=LAST)
        else:
            dist.recv(value, src=RANK - 1)
            dist.send(value, dst=(RANK + 1) % SIZE)


def later():
    """The last rank does not send what the first has asked for and waits for."""
    steps(1)
    if RANK == LAST:
        time.sleep(300)
    if RANK == 0:
        dist.irecv(value, src=LAST).wait()
    dist.all_reduce(value)


def alone():
    """The last rank stays when the others have come to their end."""
    steps(1)
    if RANK == LAST:
        time.sleep(300)


def slow():
    """Long steps, in some of which the rank computes."""
    for step in range(8):
        end = time.monotonic() + 0.5
        while RANK == LAST and time.monotonic() < end:
            time.sleep(0 if step % 2 else 0.5)
        steps(1)


def writes():
    """The last rank writes a little at a time until the file "go" exists."""
    steps(3)
    with open("written", "wb", buffering=0) as file:
        while RANK == LAST and not os.path.exists("go"):
            file.write(bytes(1 << 13))
            time.sleep(0.05)
    steps(1)


def late():
    """The last rank is late until the file "go" exists; then all make steps until "end"
    exists."""
    steps(3)
    while RANK == LAST and not os.path.exists("go"):
        time.sleep(0.1)
    end = torch.zeros(1)
    while not end:
        end += os.path.exists("end")
        dist.all_reduce(end)
        pathlib.Path("steps").touch()
        time.sleep(0.1)


steps(1) if MODE == "import" else globals()[MODE]()
print(f"{MODE}: done", flush=True)
os._exit(0)  # Not through the end of Python, which may fail because of gloo's threads.
