#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures how long MPI programs take to start and end, under hlaunch and their own launchers.

    tests/bench/mpi/mpi_speed.py [--rounds 7] [--ranks 2,8,32] [--true 128] [--wheels DIR]
                                 [--mpi TEXT] [--beside BUILD] [--json FILE]

The program is MPI_Init and MPI_Finalize, built with each MPI of this machine. hlaunch and that
MPI's mpirun or mpiexec start it, in turns within every round, on this machine. Last, all of them
start /bin/true `--true` times. Prints medians, and ratios to hlaunch's. This bench asserts only
that each program ends well.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

import mpi_installations

ROOT = pathlib.Path(__file__).resolve().parents[3]
HLAUNCH = str(pathlib.Path(os.environ.get("HLAUNCH_BIN", ROOT / "build/bin")) / "hlaunch")
LIMIT = 60  # Seconds for one launch; a longer one counts as a hang.
WIRES = {"UCX_TLS": "sm,self", "FI_PROVIDER": "tcp", "OMPI_MCA_pml": "ob1",
         "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def own_launcher(mpi, count, program):
    options = ["--oversubscribe"] if mpi.pmix else []
    return [mpi.launcher, *options, "-n", str(count), program]


def launchers(mpi, beside):
    """{name: function of the number of ranks and the program that returns the command}."""
    def by(hlaunch):
        return lambda count, program: [hlaunch, "--no-python", "-n", str(count), program]
    found = {"hlaunch": by(HLAUNCH)}
    if beside:
        found["hlaunch beside"] = by(f"{beside}/bin/hlaunch")
    found[f"{mpi.name}'s own"] = lambda count, program: own_launcher(mpi, count, program)
    return found


def seconds(command, env):
    """How long `command` took, or None if it hung."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env={**os.environ, **WIRES, **env},
                               start_new_session=True)
    try:
        errors = process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None
    took = time.perf_counter() - began
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}: "
                         f"{errors.decode()[-500:]}")
    return took


def measure(commands, env, rounds):
    """{name: [seconds]}, in turns; one launch of each beforehand warms the page cache."""
    for command in commands.values():
        seconds(command, env)
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(command, env))
    return times


def show(what, count, times):
    of_hlaunch = statistics.median(times["hlaunch"])
    for name, values in times.items():
        done = [value for value in values if value is not None]
        hung = f", {len(values) - len(done)} hung" * (len(done) < len(values))
        if not done:
            print(f"| {what} | {count} | {name} | all hung | |", flush=True)
            continue
        median = statistics.median(done)
        print(f"| {what} | {count} | {name} | {median * 1e3:.0f} ({min(done) * 1e3:.0f} .. "
              f"{max(done) * 1e3:.0f}){hung} | {of_hlaunch / median:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ranks", default="2,8,32")
    parser.add_argument("--true", type=int, default=128, help="how many; 0: none")
    parser.add_argument("--wheels", type=pathlib.Path, action="append", default=[],
                        help="a folder of environments PACKAGE-VERSION, beside tests/run's own")
    parser.add_argument("--mpi", default="", help="only those whose name contains this")
    parser.add_argument("--beside", metavar="BUILD", help="build folder of another hlaunch")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    record = []
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}, {args.rounds} rounds\n\n"
          "| program | ranks | launcher | ms (fastest .. slowest) | hlaunch takes times that |\n"
          "|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="hlaunch-mpi-") as scratch:
        folder = pathlib.Path(scratch)
        mpis = [mpi for mpi in mpi_installations.find([mpi_installations.CACHE, *args.wheels],
                                                      folder) if args.mpi in mpi.name]
        for mpi in mpis:
            program = mpi.build(pathlib.Path(__file__).with_name("init_finalize.c"), folder)
            jobs = [(count, program, f"Init, Finalize of {mpi.name}")
                    for count in map(int, args.ranks.split(","))]
            jobs += [(args.true, "/bin/true", "true")] * bool(args.true)
            for count, words, what in jobs:
                commands = {name: make(count, words)
                            for name, make in launchers(mpi, args.beside).items()}
                times = measure(commands, mpi.env, args.rounds)
                show(what, count, times)
                record.append({"what": what, "ranks": count, "seconds": times})
    if args.json:
        args.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
