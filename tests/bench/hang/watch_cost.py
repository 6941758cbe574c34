#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures what it costs to watch ranks that go on.

    tests/bench/hang/watch_cost.py [--ranks 8] [--seconds 60] [--connections 1000]

With the torch of HLAUNCH_TORCH2_PYTHON. The ranks call all_reduce twenty times a second; their
recorders are full before anything is measured. The table has the processor time of hlaunch's own
processes and of the threads with which the ranks answer, in thousandths of one core, with and
without the watch, and in a third row beside other connections of the host. This bench asserts
nothing.
"""

import argparse
import os
import pathlib
import resource
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

import lab  # noqa: E402
import torch_test  # noqa: E402

WORKER = """
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.set_num_threads(1)
value = torch.ones(4)
for _ in range(2100):
    dist.all_reduce(value)
print("READY", flush=True)
while True:
    dist.all_reduce(value)
    time.sleep(0.05)
"""
TICK = os.sysconf("SC_CLK_TCK")


def seconds_of(stat):
    """User and system time, by the text of a stat file."""
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def used(pids):
    """By the processes themselves, without what they have reaped."""
    return sum(seconds_of(pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8"))
               for pid in pids)


def used_to_answer(pids):
    """By all threads of the ranks but the main one and those of gloo."""
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            stat = (task / "stat").read_text(encoding="utf-8")
            if int(task.name) != pid and "gloo" not in stat:
                total += seconds_of(stat)
    return total


def split(run):
    """The pids of hlaunch's processes, and of the ranks."""
    own, ranks = [run.pid], []
    for pid in run.descendants():
        name = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        (ranks if name.startswith("python") else own).append(pid)
    return own, ranks


def measure(options, script, words, connections=0):
    ends = []
    with lab.Lab(1) as hosts:
        node = hosts.nodes[0]
        run = node.start(lab.HLAUNCH, "--nproc-per-node", options.ranks, *words, script,
                         env={"PYTHON_EXEC": torch_test.Torch2.python(), "OMP_NUM_THREADS": 1})
        deadline = time.monotonic() + 300
        while run.out.count("READY") < options.ranks:
            if time.monotonic() > deadline:
                raise SystemExit(f"the ranks do not come: {run}")
            time.sleep(0.2)
        if connections:
            ends.append(node.start(sys.executable, "-c", IDLE, connections))
            ends[0].wait_for("READY", 60)
        own, ranks = split(run)
        before, answered = used(own), used_to_answer(ranks)
        time.sleep(options.seconds)
        return [1000 * (now - then) / options.seconds
                for now, then in ((used(own), before), (used_to_answer(ranks), answered))]


IDLE = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
kept = []
for _ in range(int(sys.argv[1])):
    kept += [socket.create_connection(server.getsockname()), server.accept()[0]]
print("READY", flush=True)
time.sleep(3600)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--connections", type=int, default=1000)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    script = ROOT / "build/watch_cost_worker.py"
    script.write_text(WORKER, encoding="utf-8")
    print("| | hlaunch's processes | the ranks' answers |\n|---|---|---|")
    for name, words, connections in (
            ("no watch", ["--hang-timeout", "off"], 0), ("watch", [], 0),
            (f"watch, {options.connections} more connections", [], options.connections)):
        cost = measure(options, script, words, connections)
        print(f"| {name} | " + " | ".join(f"{one:.2f}" for one in cost) + " |", flush=True)


if __name__ == "__main__":
    main()
