#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank of a healthy job that stands still for a while, or seems to, where a device does the
collectives. There is no GPU: see tests/workers/played_device.py."""

import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "workers"))

import played_device as device  # noqa: E402
from played_device import MEMBERS, RANK, SIZE, call, exchange, message  # noqa: E402

MODE = sys.argv[1]
ODD = 2
SHORT, LONG = 22, 70  # As in healthy_programs.py.
SOON = 12             # Three times the time-out of the programs that have one.


def steps(count, of="0"):
    for _ in range(count):
        call("all_reduce", of)


def look():
    device.synchronize(0.002)


def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def replays():
    """Captured graphs run: the record stands still, whatever the device does."""
    steps(5)
    look()
    for _ in range(SOON * 10):
        work(0.02)
        time.sleep(0.08)


def exchanges():
    for _ in range(4):
        exchange()
        look()
        time.sleep(SOON / 2)


def blocks():
    for _ in range(4):
        device.call_block(["_all_gather_base", "_all_gather_base"])
        look()
        time.sleep(SOON / 2)


def server():
    """There is no work for a while."""
    for _ in range(2):
        steps(5)
        look()
        time.sleep(SOON)


def long_steps():
    """All ranks look at the loss from time to time."""
    for _ in range(3):
        steps(5)
        look()
        time.sleep(SOON / 2)


def slow_device():
    """The host is far ahead of its device for a long time."""
    device.How.pace = 0.5
    steps(2 * SOON)
    look()


def slow_device_alone():
    """The same, and the host is elsewhere."""
    device.How.pace = 0.5
    steps(2 * SOON)
    time.sleep(SOON)
    look()


def gloo_beside():
    steps(5)
    look()
    for _ in range(2 * SOON):
        device.wait_in_gloo("barrier")
        time.sleep(0.5)


def halves():
    """Two halves work independently, one of them seldom."""
    for _ in range(2 * SOON):
        if RANK < SIZE // 2:
            steps(1, "1")
            look()
        time.sleep(0.5)
    if RANK >= SIZE // 2:
        steps(1, "2")
        look()


def streams():
    """Two groups are used in different orders, which do not disturb each other."""
    for _ in range(2 * SOON):
        steps(1, "1" if RANK == ODD else "2")
        steps(1, "2" if RANK == ODD else "1")
        look()
        time.sleep(0.5)


def wrapped():
    device.How.kept = 20
    for _ in range(2 * SOON):
        steps(30)
        look()
        time.sleep(0.5)


def late_answer():
    """The recorder needs a while."""
    device.How.silent = 1.0
    for _ in range(2 * SOON):
        steps(1)
        look()
        time.sleep(0.5)


def nothing_called():
    time.sleep(SOON)


def uneven_ends():
    """The ranks end one after the other."""
    steps(5)
    look()
    time.sleep(SOON / 4 * RANK)


def pipeline():
    """The stages take different times."""
    for _ in range(3):
        if RANK > 0:
            message("recv", RANK - 1)
            look()
        time.sleep(SHORT if RANK == ODD else 0.1)
        if RANK + 1 < SIZE:
            message("send", RANK + 1)
    look()


def validation():
    steps(5)
    look()
    if RANK == 0:
        work(LONG)
    call("barrier")
    look()


def quiet_checkpoint():
    """Another program writes it."""
    steps(5)
    look()
    if RANK == 0:
        subprocess.run(["sleep", str(SHORT)], check=True)
    call("barrier")
    look()


def late_rank():
    steps(8)
    look()
    if RANK == ODD:
        time.sleep(SHORT)
    steps(20)
    look()


def compile_one():
    steps(5)
    look()
    if RANK == ODD:
        work(LONG)
    steps(20)
    look()


def first_step():
    if RANK == ODD:
        time.sleep(LONG)
    steps(5)
    look()


def main():
    if MODE == "halves":
        MEMBERS["1"], MEMBERS["2"] = list(range(SIZE // 2)), list(range(SIZE // 2, SIZE))
    device.start()
    globals()[MODE]()
    print(f"{MODE}: done", flush=True)
    os._exit(0)


main()
