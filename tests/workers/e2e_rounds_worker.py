#!/usr/bin/python3 -SE
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker that records its life: e2e_rounds_worker.py FOLDER NAME

It appends lines "begin|alive TIME ROUND RANK PID" to its own file in FOLDER: when it starts, and
then every 20 ms. TIME is the host's monotonic clock. ROUND is what the worker was told about its
round: the store's address and port, the restart count and the world size. It ignores SIGTERM. It
ends with 0 once FOLDER/end exists.
"""

import os
import signal
import sys
import time


def main():
    folder, name = sys.argv[1:]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    told = os.environ
    this_round = ":".join(told[key] for key in
                          ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT",
                           "WORLD_SIZE"))
    path = os.path.join(folder, f"{name}-{os.getpid()}-{time.monotonic_ns()}")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    word = "begin"
    while not os.path.exists(os.path.join(folder, "end")):
        os.write(file, f"{word} {time.monotonic()} {this_round} {told['RANK']} {os.getpid()}\n"
                 .encode())
        word = "alive"
        time.sleep(0.02)


if __name__ == "__main__":
    main()
