# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Sends heartbeats, one per step, until rank 1 stalls at step 5 in the way that the first argument
names; with restart count 1 it does not stall, and all end after step 8. The others wait for it:
they wait for a file and send heartbeats, or with the second argument `gloo` wait in a barrier of
torch, and then rank 1 does not stall before they do."""

import ctypes
import os
import pathlib
import signal
import sys
import time

import hlaunch

RANK = int(os.environ["RANK"])
RESTARTED = os.environ["TORCHELASTIC_RESTART_COUNT"] != "0"
GLOO = sys.argv[2:] == ["gloo"]
if GLOO:
    import torch.distributed


def sleep():
    time.sleep(600)


def busy_in_c():
    """Holds Python's lock, and reacts to no signal that Python handles."""
    text = b"a" * (1 << 20)
    library = ctypes.PyDLL(None)
    while True:
        library.strncmp(text, text, len(text))


def busy_in_one_call():
    while True:  # In C, with Python's lock; a signal ends one call.
        ctypes.PyDLL(None).usleep(600 * 1000 * 1000)


def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)


def same_step():
    while True:
        hlaunch.heartbeat(5)
        time.sleep(0.05)


def announced():
    hlaunch.heartbeat(5, timeout=float("inf"))
    time.sleep(12)  # Longer than the limit of the test.
    pathlib.Path("done").touch()


def pauses():
    while not os.path.exists("done"):  # The test makes it.
        time.sleep(0.02)


def at_the_barrier(more=0):
    """How many ranks have come to the barrier, with `more` that come now."""
    store = torch.distributed.distributed_c10d._get_default_store()
    return store.add("at the barrier", more)


def wait_for_the_others():
    if GLOO:
        at_the_barrier(1)
        try:
            torch.distributed.barrier()
        except RuntimeError:  # Rank 1 was killed, and the agent now ends the others.
            time.sleep(600)
        return
    while RANK != 1 and not RESTARTED and not os.path.exists("done"):
        hlaunch.heartbeat()
        time.sleep(0.02)


def main():
    if GLOO:
        torch.distributed.init_process_group("gloo")
    if sys.argv[1] == "silent" and RANK == 1:
        return pauses()
    for step in range(9):
        while GLOO and step == 5 and RANK == 1 and at_the_barrier() < 2:
            hlaunch.heartbeat()
            time.sleep(0.02)
        print("told" if hlaunch.heartbeat(step) else "nobody listens", flush=True)
        time.sleep(0.05)
        if step == 5 and RANK == 1 and not RESTARTED and sys.argv[1] != "silent":
            globals()[sys.argv[1]]()
        if step == 5:
            wait_for_the_others()


main()
