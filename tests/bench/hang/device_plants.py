#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank of a job that hangs in the way that its argument says, where a device does the
collectives. There is no GPU: see tests/workers/played_device.py."""

import fcntl
import hashlib
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "workers"))

import played_device as device  # noqa: E402
from played_device import GROUPS, MEMBERS, RANK, SIZE, call, exchange, message  # noqa: E402

MODE = sys.argv[1]
ODD = 2  # The rank that holds up the others in most of these.
AHEAD = 30


def planted():
    """Prints when this rank began to hang."""
    print(f"PLANTED {time.time()}", flush=True)


def fifo():
    """Makes a FIFO that no other process opens; returns its name."""
    name = f"fifo{RANK}"
    os.mkfifo(name)
    return name


def group(name, description, members):
    GROUPS[name], MEMBERS[name] = description, list(members)


def steps(count, of="0", name="all_reduce"):
    for _ in range(count):
        call(name, of)


def look():
    """Waits for the device as CUDA does, though not at the price of a whole core."""
    device.synchronize(0.002)


def odd(hang):
    """Makes a program in which the odd rank hangs before the fourth step, and others run ahead."""
    def run():
        steps(3)
        look()
        if RANK == ODD:
            planted()
            hang()
        steps(AHEAD)
        look()
    return run


def sleep():
    time.sleep(300)


def c_loop():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 ** 31 - 1)


def python_loop():
    while True:
        pass


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


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


def open_file():
    with open(fifo(), encoding="utf-8"):
        pass


def empty_queue():
    queue.Queue().get()


def locked_file():
    with open("lock", "w", encoding="utf-8") as mine, open("lock", encoding="utf-8") as other:
        fcntl.flock(mine, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_EX)


def early_exit():
    os._exit(0)


def broadcast():
    call("broadcast")
    steps(AHEAD)
    look()


def barrier():
    call("barrier")
    look()


def sizes():
    call("all_reduce", size=8)
    steps(AHEAD)
    look()


ODD_RANKS = [sleep, c_loop, python_loop, stopped, deadlock, answer, pipe, child, open_file,
             empty_queue, locked_file, early_exit, broadcast, barrier, sizes]


def spinning():
    """The others spin on a whole core each, and the odd rank is the only one that does not."""
    steps(3)
    look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(AHEAD)
    device.synchronize()


def none_waits():
    """No rank waits for its device: the others do something else and sleep, too."""
    steps(3)
    look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(AHEAD)
    time.sleep(400)


def all_in_barrier():
    steps(3)
    look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    call("barrier")
    look()


def gather():
    steps(3, name="_all_gather_base")
    look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(2, name="_all_gather_base")
    steps(2, name="_reduce_scatter_base")
    look()


def left_out():
    """The odd rank leaves out one of equal calls. Nothing shows this before something else is
    called."""
    steps(3)
    look()
    planted()
    steps(9 if RANK == ODD else 10)
    call("barrier")
    look()


def one_fewer():
    """As left_out, but nothing else is called."""
    steps(3)
    look()
    steps(9 if RANK == ODD else 10)
    if RANK == ODD:
        planted()
        time.sleep(300)
    look()


def crossed():
    steps(1)
    look()
    planted()
    steps(1, "2" if RANK == ODD else "1")
    look()
    steps(1, "1" if RANK == ODD else "2")
    look()


def elsewhere(wait=device.synchronize):
    """The odd rank has given its device a call of tp, and it does not come to dp."""
    steps(3)
    wait()
    if RANK == ODD:
        call("all_reduce", "2")
        planted()
        time.sleep(300)
    call("all_reduce", "1")
    wait()
    call("all_reduce", "2")
    wait()


def elsewhere_asleep():
    """The same, but nothing shows that the others wait for their devices: they sleep, too."""
    elsewhere(look)


def two_ranks():
    steps(3)
    look()
    if RANK in (1, 3):
        planted()
        time.sleep(300)
    steps(AHEAD)
    look()


def one_device():
    """The call does not end on the odd rank's device."""
    planted()
    if RANK == ODD:
        device.How.stuck.add(7)
    steps(AHEAD)
    look()


def all_devices():
    """The call ends on no device."""
    planted()
    device.How.stuck.add(7)
    steps(AHEAD)
    look()


def stuck_driver():
    """The odd rank's device does not answer, not even its recorder."""
    steps(3)
    look()
    time.sleep(3)
    if RANK == ODD:
        planted()
        device.How.silent = 600
        open(fifo(), encoding="utf-8")
    steps(AHEAD)
    look()


def first_step():
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(1)
    look()


def communicator():
    """The first collective makes the communicator: the others wait in it for the master store, and
    nothing is recorded yet."""
    if RANK == ODD:
        planted()
        time.sleep(300)
    device.How.in_store = True
    time.sleep(300)


def pipeline():
    for step in range(8):
        if RANK > 0:
            message("recv", RANK - 1)
            look()
        if RANK == ODD and step == 3:
            planted()
            time.sleep(300)
        if RANK + 1 < SIZE:
            message("send", RANK + 1)
    if RANK + 1 < SIZE:
        message("recv", SIZE - 1)
    look()


def exchanges():
    """A pipeline's neighbours exchange blocks of messages."""
    for step in range(8):
        if RANK == ODD and step == 3:
            planted()
            time.sleep(300)
        if RANK > 0:
            exchange([("recv", RANK - 1), ("send", RANK - 1)])
        if RANK + 1 < SIZE:
            exchange([("send", RANK + 1), ("recv", RANK + 1)])
        look()


def ring_of_blocks():
    for step in range(8):
        if RANK == ODD and step == 3:
            planted()
            time.sleep(300)
        exchange()
        look()


def recv_of_nobody():
    steps(3)
    look()
    if RANK == ODD:
        planted()
        message("recv", 3)
        look()
    steps(AHEAD)
    look()


def recv_ring():
    """Each rank waits for the next one, and none has sent."""
    steps(1)
    look()
    planted()
    message("recv", (RANK + 1) % SIZE)
    look()


def block():
    """Collectives in blocks, as of FSDP."""
    for step in range(6):
        if RANK == ODD and step == 3:
            planted()
            time.sleep(300)
        device.call_block(["_all_gather_base", "_all_gather_base"])
        if step < 3:
            look()
    look()


def wrapped():
    """The recorder has forgotten most of what was called."""
    device.How.kept = 50
    for _ in range(10):
        steps(20)
        look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(AHEAD)
    look()


def checkpoint():
    steps(5)
    look()
    if RANK == 0:
        planted()
        with open(fifo(), "w", encoding="utf-8"):
            pass
    call("barrier")
    look()


def own_group():
    """A group of three, of which one does not come; the fourth rank waits for all."""
    steps(3)
    look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    if RANK < 3:
        steps(AHEAD, "1")
        look()
    steps(1)
    look()


def stages():
    """Groups of two wait for each other; at the end of the chain one rank sleeps."""
    steps(3)
    look()
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(1, "1" if RANK < 2 else "2")
    look()
    steps(1)
    look()


def mesh():
    """A mesh of four rows and four columns."""
    for step in range(8):
        steps(1, f"row{RANK // 4}")
        look()
        if RANK == 5 and step == 4:
            planted()
            time.sleep(300)
        steps(1, f"column{RANK % 4}")
        look()


def beside_gloo():
    """The ranks meet in a barrier of gloo, beside their devices' collectives."""
    steps(3)
    look()
    for _ in range(2):
        device.wait_in_gloo("barrier")
    if RANK == ODD:
        planted()
        time.sleep(300)
    device.wait_in_gloo("barrier")


def gloo_beside():
    """The devices hang, and gloo has been used beside them."""
    device.wait_in_gloo("barrier")
    steps(3)
    look()
    device.wait_in_gloo("barrier")
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(AHEAD)
    look()


def second_round():
    steps(3)
    look()
    if RANK == ODD and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        sys.exit(3)
    if RANK == ODD:
        planted()
        time.sleep(300)
    steps(1)
    look()


def part():
    """Two halves work on their own; in one of them a rank sleeps."""
    steps(3, "1" if RANK < 2 else "2")
    look()
    if RANK == 1:
        planted()
        time.sleep(300)
    while RANK >= 2:
        call("all_reduce", "2")
        look()
        time.sleep(0.2)
    call("all_reduce", "1")
    look()


PLANTS = {hang.__name__: odd(hang) for hang in ODD_RANKS}
PLANTS.update({hang.__name__: hang for hang in (
    spinning, none_waits, all_in_barrier, gather, left_out, one_fewer, crossed, elsewhere,
    elsewhere_asleep, two_ranks, one_device, all_devices, stuck_driver, first_step, communicator,
    pipeline, exchanges, ring_of_blocks, recv_of_nobody, recv_ring, block, wrapped, checkpoint,
    own_group, stages, mesh, beside_gloo, gloo_beside, second_round, part)})


def main():
    if MODE == "own_group":
        group("1", "dp", range(3))
    elif MODE in ("stages", "part"):
        group("1", "dp", range(2))
        group("2", "tp", range(2, 4))
    elif MODE == "mesh":
        for i in range(4):
            group(f"row{i}", f"row{i}", range(4 * i, 4 * i + 4))
            group(f"column{i}", f"column{i}", range(i, 16, 4))
    device.start()
    PLANTS[MODE]()
    print(f"{MODE}: has not hung", flush=True)
    os._exit(0)


main()
