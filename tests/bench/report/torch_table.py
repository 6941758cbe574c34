#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs the plants in torch of plants.py under several releases of torch and with several back ends.

    tests/bench/report/torch_table.py [--torch PYTHON]... [--backend gloo]... [--only REGEX] [--jobs 2]

Prints a line for each report: torch, back end, plant, and whether rank, host, cause and advice are
right; the report follows where one of them is not. Ends with 1 if there is such a report, or no
torch. How long a report takes is in the line and no error: see blame.py.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

BLAME = pathlib.Path(__file__).with_name("blame.py")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"), "hlaunch")
TORCHES = ("torch-2.13.0", "torch-newest")  # tests/run provides them.
BACKENDS = ("gloo", "hlaunch")


def release(python):
    """The release of torch at `python`; empty if there is none."""
    return subprocess.run([python, "-c", "import torch; print(torch.__version__)"], text=True,
                          capture_output=True, check=False).stdout.strip()


def results(python, backend, options):
    """Yields what blame.py finds, as it finds it."""
    bench = subprocess.Popen(
        [sys.executable, BLAME, "--in-torch", "--without-torchrun", "--backend", backend,
         "--only", options.only, "--jobs", str(options.jobs), "--json", "/dev/stdout"],
        env={**os.environ, "HLAUNCH_TORCH2_PYTHON": python}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    rest = []
    for text in bench.stdout:
        if text.startswith('{"group": '):
            yield json.loads(text)
        else:
            rest.append(text)
    if bench.wait():
        raise SystemExit(f"the bench ended with {bench.returncode}:\n{''.join(rest)}")


def line(plant):
    """(the line of a plant, whether all of its report is right)"""
    parts = {name: plant[name] for name in ("rank", "host", "cause")}
    if plant["named_rank"] is None:
        parts.pop("rank")
    words = [f"{name} {'right' if right else 'WRONG'}" for name, right in parts.items()]
    words.append(f"advice {plant['advice']}")
    words.append("no report" if plant["seconds"] is None else f"{plant['seconds']:.1f} s")
    right = all(parts.values()) and plant["advice"] in ("right", "none") and plant["seconds"] is not None
    return f"{plant['group']}: {plant['name']} | {' | '.join(words)}", right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", action="append", help="a Python with torch")
    parser.add_argument("--backend", action="append")
    parser.add_argument("--only", default="", help="a pattern in group: name")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    wrong = total = 0
    for python in options.torch or [str(CACHE / name / "bin/python") for name in TORCHES]:
        version = release(python)
        if not version:
            print(f"no torch at {python}; tests/run --full brings it", flush=True)
            continue
        for backend in options.backend or BACKENDS:
            for plant in results(python, backend, options):
                text, right = line(plant)
                print(f"torch {version} | {backend} | {text}", flush=True)
                if not right:
                    print("    " + plant["report"].replace("\n", "\n    "), flush=True)
                total, wrong = total + 1, wrong + (not right)
    print(f"{total} reports, {wrong} not right")
    return 1 if wrong or not total else 0


if __name__ == "__main__":
    sys.exit(main())
