#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures how long it takes to start `true` on N hosts by ssh and to see its end.

    tests/bench/launch/hosts_speed.py [--hosts 64] [--rounds 3] [--json FILE]

hlaunch --hosts is compared with Open MPI's mpirun and mpiexec.hydra, if installed, over the real
sshds of N hosts made of namespaces on this machine. They take turns within every round, so that a
machine that slows down slows all. Most of the time is key exchange, whose two ends share this
machine's cores. Prints medians, and ratios to hlaunch's. This bench asserts only that each starts
on all hosts. Needs root.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
import lab  # noqa: E402
import ssh_lab  # noqa: E402

LIMIT = 60  # Seconds for one start on a quiet machine.


def launchers(hosts):
    """{name: the command that prints each host's name}."""
    names, count = ",".join(hosts), str(len(hosts))
    found = {"hlaunch": [lab.HLAUNCH, "--hosts", names, "--no-python", "hostname"]}
    if mpirun := shutil.which("mpirun.openmpi"):
        found["Open MPI"] = [mpirun, "--allow-run-as-root", "--host", names, "-n", count,
                             "--map-by", "node", "hostname"]
    if hydra := shutil.which("mpiexec.hydra"):
        found["Hydra"] = [hydra, "-hosts", names, "-n", count, "hostname"]
    return found


def seconds(node, command, hosts):
    began = time.perf_counter()
    run = node.run(*command, timeout=LIMIT, cwd="/")
    took = time.perf_counter() - began
    missing = [host for host in hosts if host not in run.out]
    if run.code != 0 or missing:
        sys.exit(f"not on all hosts ({missing}): {run}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if ssh_lab.missing():
        sys.exit(ssh_lab.missing())
    with lab.Lab(args.hosts) as hosts_lab:
        ssh_lab.SshLab(hosts_lab)
        hosts = [node.name for node in hosts_lab.nodes]
        commands = launchers(hosts)
        times = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                times[name].append(seconds(hosts_lab.nodes[0], command, hosts))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        print(f"{name:10} {args.hosts} hosts: {median:6.2f} s  {median / medians['hlaunch']:.2f}x  "
              f"({', '.join(f'{value:.2f}' for value in times[name])})")
    if args.json:
        args.json.write_text(json.dumps(times, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
