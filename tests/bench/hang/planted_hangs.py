#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank of a job that hangs in the way that its argument says. It does not know hlaunch. The
groups have the backend that PLANT_BACKEND names, or gloo."""

import datetime
import os
import sys
import time

MODE = sys.argv[1]
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
ODD = 2  # The rank that holds up the others in most of these.


def planted():
    """Prints when this rank began to hang."""
    print(f"PLANTED {time.time()}", flush=True)


def fifo():
    """Makes a FIFO that no other process opens; returns its name."""
    name = f"fifo{RANK}"
    os.mkfifo(name)
    return name


def before_torch():
    if RANK == ODD:
        planted()
        open(fifo(), encoding="utf-8")


if MODE == "before_torch":
    before_torch()

import atexit
import ctypes
import fcntl
import hashlib
import queue
import re
import signal
import socket
import subprocess
import threading

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


def before_init():
    if RANK == ODD:
        planted()
        time.sleep(300)


if MODE == "before_init":
    before_init()

dist.init_process_group(os.environ.get("PLANT_BACKEND", "gloo"), timeout=datetime.timedelta(seconds=300))
value = torch.ones(4)


def steps(count):
    for _ in range(count):
        dist.all_reduce(value)


def odd(hang):
    """Makes a program of four steps in which the odd rank hangs before the fourth."""
    def run():
        steps(3)
        if RANK == ODD:
            planted()
            hang()
        steps(1)
    return run


class Stuck(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(300)


def sleep():
    time.sleep(300)


def interpreter():
    ctypes.PyDLL(None).sleep(300)  # It does not release the interpreter.


def regex():
    re.match(r"(a+)+$", "a" * 64 + "b")


def c_loop():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 ** 31 - 1)


def c_loop_in_interpreter():
    sum(range(10 ** 13))


def python_loop():
    while True:
        pass


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


def kernel():
    """The parent of a vfork waits in state D until the child runs its program."""
    os.posix_spawn("/bin/true", ["true"], os.environ,
                   file_actions=[(os.POSIX_SPAWN_OPEN, 3, fifo(), os.O_RDONLY, 0)])


def loader():
    for _ in DataLoader(Stuck(), num_workers=2):
        pass


def deadlock():
    first, second, met = threading.Lock(), threading.Lock(), threading.Barrier(2)

    def other():
        with second:
            met.wait()
            with first:
                pass
    threading.Thread(target=other, daemon=True).start()
    with first:
        met.wait()
        with second:
            pass


def answer():
    server = socket.create_server(("127.0.0.1", 0))
    socket.create_connection(server.getsockname()).recv(1)


def pipe():
    _, write = os.pipe()
    while True:
        os.write(write, bytes(65536))


def child():
    subprocess.run(["sleep", "300"], check=False)


def stdin():
    read, _ = os.pipe()
    os.dup2(read, 0)
    sys.stdin.readline()


def open_file():
    with open(fifo(), encoding="utf-8"):
        pass


def empty_queue():
    queue.Queue().get()


def locked_file():
    with open("lock", "w", encoding="utf-8") as mine, open("lock", encoding="utf-8") as other:
        fcntl.flock(mine, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_EX)


def last_thread():
    """The end of the interpreter waits for this thread."""
    threading.Thread(target=time.sleep, args=(300,)).start()
    sys.exit()


def at_exit():
    atexit.register(sleep)
    sys.exit()


def early_exit():
    """A child that the rank leaves behind keeps its connections open."""
    if os.fork() == 0:
        time.sleep(300)
    os._exit(0)


def recv_of_nobody():
    dist.recv(value, src=3)


def key_of_one():
    dist.distributed_c10d._get_default_store().get("nobody sets it")


def broadcast():
    dist.broadcast(value, src=0)


def barrier():
    dist.barrier()


ODD_RANKS = [sleep, interpreter, regex, c_loop, c_loop_in_interpreter, python_loop, stopped, kernel,
             loader, deadlock, answer, pipe, child, stdin, open_file, empty_queue, locked_file,
             last_thread, at_exit, early_exit, recv_of_nobody, key_of_one, broadcast, barrier]


def sizes():
    steps(3)
    planted()
    dist.all_reduce(torch.ones(8 if RANK == ODD else 4))
    steps(1)


def first_step():
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(1)


def started_only():
    """Like all ranks, the odd rank has begun the fourth step, but it does not reach the fifth."""
    steps(3)
    if RANK == ODD:
        dist.all_reduce(torch.ones(4), async_op=True)
        planted()
        time.sleep(300)
    steps(2)


def checkpoint():
    steps(5)
    if RANK == 0:
        planted()
        torch.save(value, fifo())
    dist.barrier()


def crossed():
    one, other = dist.new_group(group_desc="dp"), dist.new_group(group_desc="tp")
    steps(1)
    planted()
    dist.all_reduce(value, group=other if RANK == ODD else one)
    dist.all_reduce(value, group=one if RANK == ODD else other)


def key_of_all():
    steps(1)
    planted()
    key_of_one()


def new_group_of_most():
    steps(2)
    planted()
    if RANK != ODD:
        dist.new_group()
    steps(1)


def recv_ring():
    """Each rank waits for the next one, and none has sent."""
    steps(1)
    planted()
    dist.recv(value, src=(RANK + 1) % SIZE)


def recv_of_odd():
    steps(3)
    if RANK == ODD:
        planted()
        time.sleep(300)
    elif RANK == 0:
        dist.recv(value, src=ODD)
    steps(1)


def pipeline():
    """Stages without a collective: messages go from rank to rank, and one rank stops them."""
    for step in range(8):
        if RANK > 0:
            dist.recv(value, src=RANK - 1)
        if RANK == ODD and step == 3:
            planted()
            time.sleep(300)
        if RANK + 1 < SIZE:
            dist.send(value, dst=RANK + 1)
    if RANK + 1 < SIZE:
        dist.recv(value, src=SIZE - 1)


def monitored():
    steps(3)
    if RANK == ODD:
        planted()
        time.sleep(300)
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=300))


def two_ranks():
    steps(3)
    if RANK in (1, 3):
        planted()
        time.sleep(300)
    steps(1)


def stages():
    """Groups of two wait for each other; at the end of the chain one rank sleeps."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    steps(3)
    if RANK == ODD:
        planted()
        time.sleep(300)
    dist.all_reduce(value, group=groups[RANK // 2])
    steps(1)


def mesh():
    """A mesh of four rows and four columns."""
    rows = [dist.new_group(range(4 * i, 4 * i + 4), group_desc=f"row{i}") for i in range(4)]
    columns = [dist.new_group(range(i, 16, 4), group_desc=f"column{i}") for i in range(4)]
    for step in range(8):
        dist.all_reduce(value, group=rows[RANK // 4])
        if RANK == 5 and step == 4:
            planted()
            time.sleep(300)
        dist.all_reduce(value, group=columns[RANK % 4])


def parallel_data():
    class Model(torch.nn.Linear):
        calls = 0

        def forward(self, data):
            self.calls += 1
            if RANK == ODD and self.calls == 6:
                planted()
                time.sleep(300)
            return super().forward(data)
    model = torch.nn.parallel.DistributedDataParallel(Model(4, 4))
    for _ in range(8):
        model(value).sum().backward()


def objects():
    steps(2)
    if RANK == ODD:
        planted()
        time.sleep(300)
    dist.all_gather_object([None] * SIZE, {"rank": RANK})


def second_round():
    steps(3)
    if RANK == ODD and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(3)
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(1)


PLANTS = {hang.__name__: odd(hang) for hang in ODD_RANKS}
PLANTS.update({hang.__name__: hang for hang in (
    sizes, first_step, started_only, checkpoint, crossed, key_of_all, new_group_of_most, recv_ring,
    recv_of_odd, pipeline, monitored, two_ranks, stages, mesh, parallel_data, objects,
    second_round)})
PLANTS.update({"before_torch": lambda: steps(1), "before_init": lambda: steps(1)})
PLANTS[MODE]()
print(f"{MODE}: has not hung", flush=True)
os._exit(0)
