#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Sets torch's timers. Rank 1 exceeds its last one, unless the restart count is 1; the others wait
for it, up to ten minutes. Argument: the signal that ends it."""

import os
import signal
import sys
import time

import torch.distributed.elastic.timer as timer


def main():
    path = os.environ["TORCHELASTIC_TIMER_FILE"]
    timer.configure(timer.FileTimerClient(path, signal=signal.Signals[sys.argv[1]]))
    for _ in range(20):
        with timer.expires(after=300, scope="in time"):
            pass
    restarted = os.environ["TORCHELASTIC_RESTART_COUNT"] == "1"
    print("armed", path, flush=True)
    if os.environ["RANK"] == "1" and not restarted:
        with timer.expires(after=0.5, scope="train_step 7"):
            time.sleep(600)
    elif not restarted:
        time.sleep(600)


main()
