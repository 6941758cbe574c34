#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Checks that the master store is linearisable per key, over many histories under random faults.

    tests/bench/store/store_histories.py [--seeds 1:10] [--faults 40] [--longest 3]

Each seed is one job of tests/fault/store_history_test.py, with its faults and its check: odd seeds
with a token, so that the proxy's connection is encrypted, even seeds without. One history takes
about two minutes. Prints a row for each. If no order explains a history, it prints the shortest
piece that shows this, and the exit code is 1.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

TEST = pathlib.Path(__file__).resolve().parents[2] / "fault/store_history_test.py"
FIGURES = re.compile(r"(\d+) operations on (\d+) keys: .*; the outcome of (\d+) is unknown; "
                     r"(\d+) keys undecided")
SKIP = 77


def history(seed, options):
    """Prints the row of one seed; returns whether all keys had an order."""
    kind = "History" if seed % 2 else "HistoryInClear"
    done = subprocess.run(
        [sys.executable, TEST, "--seed", str(seed), "--faults", str(options.faults), "--longest",
         str(options.longest), kind], capture_output=True, text=True, check=False)
    if done.returncode == SKIP:
        sys.exit(done.stdout.strip())
    figures = FIGURES.search(done.stdout)
    row = figures.groups() if figures else ("-",) * 4
    right = done.returncode == 0
    print(f"{seed:6} {kind:15} " + " ".join(f"{number:>10}" for number in row)
          + ("  linearisable" if right else "  FAILED"), flush=True)
    if not right:
        print(done.stdout + done.stderr, flush=True)
    return right


def seeds(text):
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=seeds, default="1:10")
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--longest", type=float, default=3,
                        help="seconds that a fault lasts at most")
    options = parser.parse_args()
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}, {options.faults} faults each\n\n"
          f"{'seed':>6} {'':15} operations       keys    unknown  undecided", flush=True)
    results = [history(seed, options) for seed in options.seeds]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
