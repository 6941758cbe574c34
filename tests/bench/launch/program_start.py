#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures the size of hlaunch's programs and how long they take to start, for several builds.

    tests/bench/launch/program_start.py [--rounds 41] BUILD…

A build is a folder with bin/hlaunch and bin/hlaunch-agent, for example one with HLAUNCH_STATIC and
one without. Starts each program with --version, in turns. Prints medians. This bench asserts
nothing.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

PROGRAMS = ("hlaunch", "hlaunch-agent", "hlaunch-rendezvous")


def milliseconds(program):
    began = time.perf_counter()
    subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True, timeout=60)
    return 1e3 * (time.perf_counter() - began)


def stripped_size(program):
    with tempfile.NamedTemporaryFile() as copy:
        subprocess.run(["strip", "-o", copy.name, program], check=True, timeout=60)
        return pathlib.Path(copy.name).stat().st_size


def libraries(program):
    """The number of shared libraries that it loads, including ld.so and the kernel's."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, timeout=60)
    return len(re.findall(r"\(0x", told.stdout))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("builds", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    programs = [build / "bin" / name for name in PROGRAMS for build in options.builds]
    times = {program: [] for program in programs}
    for program in programs:
        milliseconds(program)
    for _ in range(options.rounds):
        for program in programs:
            times[program].append(milliseconds(program))
    print("| program | MB, stripped | shared libraries | --version, ms (fastest .. slowest) |")
    print("|---|---|---|---|")
    for program in programs:
        took = times[program]
        print(f"| {program} | {stripped_size(program.resolve()) / 1e6:.1f} | {libraries(program)} "
              f"| {statistics.median(took):.1f} ({min(took):.1f} .. {max(took):.1f}) |")


if __name__ == "__main__":
    main()
