#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Whom the final report blames: hlaunch beside torchrun, on the plants of the end-to-end test.

    tests/bench/report/blame.py [--rounds 3] [--torch] [--json FILE]

Four workers on this machine, of which one fails. A report is right if it names that rank as the
first; of torchrun's that is its "Root Cause". With --torch the workers are torch's own, in real
collectives. Checks nothing: a figure is not a test.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

import lab  # noqa: E402
import planted_failures_test as planted  # noqa: E402

WORKERS = 4
LIMIT = 60  # Seconds for one run; one that takes longer hangs.
# What the first cause is, of torchrun's and hlaunch's reports.
BLAMED = {"hlaunch": r"job failed: .*?rank (\d+) \(",
          "torchrun": r"Root Cause[^\n]*\n(?:[^\n]*\n)*?\s*rank\s*: (\d+) "}


def command(launcher, words, python):
    if launcher == "hlaunch":
        return [lab.HLAUNCH, "--nproc-per-node", str(WORKERS), *words]
    return [planted.TORCH2, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node",
            str(WORKERS), *(["--no-python", python] if python != planted.TORCH2 else []), *words]


def run(launcher, plant, program, python, folder):
    """(the rank that was blamed or None, the exit code, seconds)."""
    target = plant.planted if plant.planted is not None else 1 if plant.rank is None else plant.rank
    words = [program, plant.name, str(target), *(["--record"] if plant.record else [])]
    began = time.monotonic()
    try:
        done = subprocess.run(command(launcher, words, python), capture_output=True, text=True,
                              timeout=LIMIT, check=False, cwd=folder, errors="replace",
                              env={**os.environ, "PYTHON_EXEC": python, "PLANT_FOLDER": folder})
    except subprocess.TimeoutExpired:
        return None, None, LIMIT
    found = re.search(BLAMED[launcher], done.stderr)
    return int(found[1]) if found else None, done.returncode, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    plants = planted.TORCH_PLANTS if options.torch else planted.PLANTS
    program = planted.TORCH_PROGRAM if options.torch else planted.PROGRAM
    python = planted.TORCH2 if options.torch else planted.TORCH1
    # "unreachable" needs a host without a route; where every rank fails nobody is to blame.
    plants = [plant for plant in plants
              if not plant.options and plant.planted is None and plant.name != "unreachable"]
    results = []
    for plant in plants:
        expected = 1 if plant.rank is None else plant.rank
        row = {"plant": plant.name + (" @record" if plant.record else ""), "rank": expected}
        for launcher in BLAMED:
            row[launcher] = []
            for _ in range(options.rounds):
                with tempfile.TemporaryDirectory(prefix="hlaunch-blame-") as folder:
                    row[launcher].append(run(launcher, plant, program, python, folder))
        results.append(row)
        print(f"{row['plant']:24} rank {expected}: " + "; ".join(
            f"{launcher} {sum(blamed == expected for blamed, _, _ in row[launcher])} of "
            f"{options.rounds}, code {row[launcher][0][1]}" for launcher in BLAMED), flush=True)
    for launcher in BLAMED:
        right = sum(blamed == row["rank"] for row in results for blamed, _, _ in row[launcher])
        always = sum(all(blamed == row["rank"] for blamed, _, _ in row[launcher])
                     for row in results)
        codes = sum(row[launcher][0][1] in (plant.code, plant.code - 256)
                    for row, plant in zip(results, plants))
        print(f"{launcher}: the right rank in {right} of {len(results) * options.rounds} runs, in "
              f"every run of {always} of {len(results)} plants; the worker's own exit code for "
              f"{codes}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
