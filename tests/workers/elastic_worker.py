# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Reports a good moment to stop when it begins, and again once the file that the first argument
names exists. Then a lone worker waits to be stopped, and one of several ends. If the second
argument is `ends`, a lone worker ends too."""

import os
import pathlib
import sys
import time

import hlaunch

FILE = pathlib.Path(sys.argv[1])
SIZE = int(os.environ["WORLD_SIZE"])


def main():
    told = hlaunch.at_boundary()
    print(f"rank {os.environ['RANK']} of {SIZE} begins, told: {told}", flush=True)
    while not FILE.exists():
        time.sleep(0.05)
    hlaunch.at_boundary()
    if SIZE == 1 and sys.argv[2:] != ["ends"]:
        time.sleep(600)


main()
