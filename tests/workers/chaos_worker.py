#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A rank that trains and records what it does: chaos_worker.py FOLDER HOST

All ranks exchange numbers in each step. A rank appends lines to FOLDER/HOST.RANK.lines, with times
of this machine's monotonic clock:

    alive HOST PID RANK ROUND WORLD TIME                        twenty times a second from the start
    step  HOST PID RANK ROUND WORLD STEP BEGIN END RANKS STEPS  RANKS, STEPS: sums over all ranks

ROUND is the round's number, with a hash that tells its secret from others. A new round continues
from FOLDER/checkpoint, which rank 0 writes every ten steps. All end once rank 0 sees FOLDER/end.
Workers with an odd rank ignore SIGTERM.
"""

import array
import hashlib
import os
import pathlib
import signal
import sys
import threading
import time

import hlaunch

PAUSE = 0.03  # Between two steps.


class Rank:
    def __init__(self, folder, host):
        told = os.environ
        secret = hashlib.sha256(told["HLAUNCH_COMM_SECRET"].encode()).hexdigest()[:8]
        self.folder, self.rank = pathlib.Path(folder), int(told["RANK"])
        self.world = int(told["WORLD_SIZE"])
        self.place = f"{host} {os.getpid()} {self.rank} {told['HLAUNCH_ROUND']}.{secret} {self.world}"
        self.file = os.open(self.folder / f"{host}.{self.rank}.lines",
                            os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind, *values):
        os.write(self.file, f"{kind} {self.place} {' '.join(map(str, values))}\n".encode())

    def stay_alive(self):
        while True:
            self.write("alive", time.monotonic())
            time.sleep(0.05)

    def first_step(self):
        """Sends the step of rank 0's checkpoint to all; returns it."""
        kept = self.folder / "checkpoint"
        number = int(kept.read_text()) if self.rank == 0 and kept.exists() else 0
        first = array.array("q", [number])
        hlaunch.broadcast(first, src=0)
        return first[0]

    def keep(self, number):
        new = self.folder / "checkpoint.new"
        new.write_text(str(number))
        new.rename(self.folder / "checkpoint")

    def train(self):
        number, over = self.first_step(), False
        while not over:
            begin = time.monotonic()
            end_seen = self.rank == 0 and (self.folder / "end").exists()
            sums = array.array("q", [self.rank + 1, number, end_seen])
            hlaunch.all_reduce(sums)
            self.write("step", number, begin, time.monotonic(), sums[0], sums[1])
            over, number = sums[2] > 0, number + 1
            if self.rank == 0 and number % 10 == 0:
                self.keep(number)
            time.sleep(PAUSE)


def main():
    rank = Rank(*sys.argv[1:])
    if rank.rank % 2:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=rank.stay_alive, daemon=True).start()
    hlaunch.init_process_group()
    rank.train()
    hlaunch.barrier()
    hlaunch.destroy_process_group()


if __name__ == "__main__":
    main()
