#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank that gives its collectives to a device, which does them later, as with NCCL: see
played_device.py."""

import json
import os
import pathlib
import sys
import time

import played_device as device
from played_device import MEMBERS, RANK, SIZE, call, exchange, message, synchronize

MODE = sys.argv[1]
LAST = RANK == SIZE - 1


def idle_rank():
    time.sleep(600)


def steps(count, group="0"):
    for _ in range(count):
        call("all_reduce", group)


def slow_steps():
    """The last rank takes longer in each step, and each waits for its device then."""
    steps(100)
    synchronize(0.01)
    while not pathlib.Path("end").exists():
        time.sleep(0.6 if LAST else 0.3)
        steps(1)
        synchronize(0.01)
    os._exit(0)  # Others may have seen the file one step before.


def main():
    if MODE == "slow":
        device.HANDLERS["hlaunch_pace"] = lambda: "\n" + json.dumps(
            {"does": "works", "at": "slow_steps (device_worker.py:1)", "groups": ["0"]})
    if MODE == "part":  # The last rank has a group of its own.
        MEMBERS.update({"1": list(range(SIZE - 1)), "2": [SIZE - 1]})
    if MODE == "device" and LAST:
        device.How.stuck.add(4)
    device.start()
    steps(3)
    synchronize()
    if MODE == "sleep":
        if LAST:
            idle_rank()
        steps(30)  # The others run ahead.
    elif MODE == "op":
        call("broadcast" if LAST else "all_reduce")
        steps(5)
    elif MODE == "crossed":
        steps(1, "1" if LAST else "2")
        synchronize()
        steps(1, "2" if LAST else "1")
    elif MODE == "elsewhere":
        # The last rank has given its device a call of tp, and does not come to dp.
        if LAST:
            call("all_reduce", "2")
            idle_rank()
        call("all_reduce", "1")
        synchronize()
        call("all_reduce", "2")
    elif MODE == "device":
        steps(5)
    elif MODE == "receive":
        if LAST:
            idle_rank()
        message("recv", SIZE - 1)
    elif MODE == "part":
        while LAST:
            call("all_reduce", "2")
            time.sleep(0.1)
        if RANK == 1:
            idle_rank()
        call("all_reduce", "1")
    elif MODE == "slow":
        slow_steps()
    elif MODE == "exchanges":
        for _ in range(3):
            exchange()
            synchronize()
            time.sleep(5)
    synchronize()


main()
