#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures what the checks before a round cost: N agents on this machine launch /bin/true.

    tests/bench/preflight/preflight_speed.py [--rounds 5] [--agents 2,4,16] [--modes off,quick,full]

The modes take turns within every round, so that a machine that slows down slows all of them. All
agents share this machine's cores, unlike in a cluster: with many agents the figures show mainly
their CPU time. Prints medians with the fastest and slowest, and the difference to the first mode's.
This bench asserts nothing.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
HLAUNCH = str(pathlib.Path(os.environ.get("HLAUNCH_BIN", ROOT / "build/bin")) / "hlaunch")
LIMIT = 120  # Seconds for one launch.


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def launch(agents, mode):
    """Seconds from the start of the agents to the end of the last one."""
    port = free_port()
    command = [HLAUNCH, "--nnodes", str(agents), "--rdzv-endpoint", f"127.0.0.1:{port}",
               "--rdzv-id", f"preflight-{port}", "--preflight", mode, "--no-python", "/bin/true"]
    began = time.perf_counter()
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE) for _ in range(agents)]
    for process in running:
        errors = process.communicate(timeout=LIMIT)[1]
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}: "
                             f"{errors.decode()[-500:]}")
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", default="2,4,16")
    parser.add_argument("--modes", default="off,quick,full")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    modes = args.modes.split(",")
    figures = {}
    for agents in map(int, args.agents.split(",")):
        times = {mode: [] for mode in modes}
        launch(agents, modes[-1])  # This warms the page cache.
        for _ in range(args.rounds):
            for mode in modes:
                times[mode].append(launch(agents, mode))
        base = statistics.median(times[modes[0]])
        for mode in modes:
            median = statistics.median(times[mode])
            print(f"{agents:3d} agents  {mode:6s} {median * 1000:7.0f} ms "
                  f"({min(times[mode]) * 1000:.0f} to {max(times[mode]) * 1000:.0f})  "
                  f"{(median - base) * 1000:+7.0f} ms", flush=True)
        figures[agents] = times
    if args.json:
        args.json.write_text(json.dumps(figures), encoding="utf-8")


if __name__ == "__main__":
    main()
