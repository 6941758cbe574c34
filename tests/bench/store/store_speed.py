#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Compares hlaunch's master store with PyTorch's own server, under the same load, on this machine.

    tests/bench/store/store_speed.py [--rounds 7] [--rows REGEX] [--beside BUILD] [--json FILE]

The servers take turns within every round, so that a machine that slows down slows both. Each runs
on one processor and its load on another, if there are two. Prints medians and ratios: over 1 is
better than PyTorch's, or with --beside than that other build of hlaunch. This bench asserts
nothing.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("HLAUNCH_BUILD", ROOT / "build"))
CACHED = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
TORCH = os.environ.get("HLAUNCH_TORCH2_PYTHON", str(CACHED / "hlaunch/torch-newest/bin/python"))
LOAD = str(BUILD / "tests/bench/store/store_load")
FIGURES = ("1/s", "p50 us", "p99 us", "server CPU us")
CPUS = sorted(os.sched_getaffinity(0))

TORCH_SERVER = """
import torch.distributed as dist, sys
store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""
# PyTorch's server asks the name server for the name of each client, and does nothing else until the
# answer comes: 0.5 ms each here, and 5 s if one is lost. With --names that is measured; otherwise
# the server sees its own nsswitch.conf, in which hosts come from /etc/hosts alone.
WITHOUT_NAMES = ["unshare", "--mount", "--map-root-user", "sh", "-c",
                 'printf "hosts: files\\n" >"$0" && mount --bind "$0" /etc/nsswitch.conf && exec "$@"']
SERVERS = {
    "hlaunch": [str(BUILD / "tests/rendezvous/c10d_server_main")],
    "torch": [TORCH, "-c", TORCH_SERVER],
}

# One torch client. It prints "rate p50 p99" for each call, like the C++ load.
TORCH_CLIENT = """
import sys, time
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", int(sys.argv[1]), None, False)
keys = [f"torch/{i}" for i in range(16)]
value = "x" * 64
store.multi_set(keys, [value] * 16)
key = keys[0]
calls = {
    "get": lambda: store.get(key),
    "set": lambda: (store.set(key, value), store.num_keys()),
    "add": lambda: store.add("torch/n", 1),
    "wait": lambda: store.wait([key]),
    "multi_get": lambda: store.multi_get(keys),
    "multi_set": lambda: (store.multi_set(keys, [value] * 16), store.num_keys()),
    "queue": lambda: (store.queue_push("torch/q", value), store.queue_pop("torch/q")),
}
for line in sys.stdin:
    run, times = calls[line.strip()], []
    for _ in range(50):
        run()
    began = now = time.perf_counter_ns()
    end = began + int(sys.argv[2]) * 1_000_000
    while now < end:
        run()
        after = time.perf_counter_ns()
        times.append(after - now)
        now = after
    times.sort()
    rate = len(times) * 1e9 / (now - began)
    print(rate, times[len(times) // 2] / 1e3, times[len(times) * 99 // 100] / 1e3, flush=True)
"""
TORCH_CALLS = ["get", "set", "add", "wait", "multi_get", "multi_set", "queue"]


def pinned(index, command):
    return ["taskset", "-c", str(CPUS[index]), *command] if len(CPUS) > 1 else command


class Server:
    """One running server. Use it as a context manager."""

    def __init__(self, command):
        self.client = None
        self.process = subprocess.Popen(pinned(0, command), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = self.process.stdout.readline().strip()
        if not self.port:
            raise SystemExit(f"the server did not start: {' '.join(command)[:200]}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in filter(None, (self.client, self.process)):
            process.stdin.close()
            process.wait(30)

    def call(self, name, millis):
        """A torch client's figures for `name`; the client is started once."""
        if self.client is None:
            self.client = subprocess.Popen(
                pinned(-1, [TORCH, "-c", TORCH_CLIENT, self.port, str(millis)]), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.client.stdin.write(name + "\n")
        self.client.stdin.flush()
        return [float(word) for word in self.client.stdout.readline().split()]

    def resident(self):
        """KiB of memory that the process shares with no other."""
        text = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="utf-8")
        return sum(int(n) for n in re.findall(r"^Private_\w+: +(\d+)", text, re.M))

    def load(self, *args):
        done = subprocess.run(pinned(-1, [LOAD, self.port, *map(str, args)]), timeout=120,
                              stdout=subprocess.PIPE, text=True, check=True)
        return [float(word) for word in done.stdout.split()]


# A row: a name, and a function of a server that returns {figure: value}. Figures in /s are better
# when larger, all others when smaller.

def request_row(op, connections, size, keys=1):
    many = f" x {keys}" if keys > 1 else ""
    sized = f", {size >> 20} MiB" if size >= 1 << 20 else ""
    return f"{op}{many}{sized}, {connections} conn.", lambda server, millis: dict(
        zip(FIGURES, server.load("requests", op, connections, millis, size, keys,
                                 server.process.pid)))


def torch_row(call):
    return f"torch client: {call}", lambda server, millis: dict(
        zip(FIGURES, server.call(call, millis)))


def timed_row(name, mode, connections):
    return f"{name} {connections}", lambda server, _: {
        "ms": server.load(mode, connections)[0] / 1000}


def memory_row(connections):
    def measure(server, _):
        server.load("storm", 1)  # The effects of the first client are not counted.
        before = server.resident()
        holder = subprocess.Popen([LOAD, server.port, "hold", str(connections)], text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            if holder.stdout.readline() != "held\n":
                raise SystemExit("the connections could not be made")
            return {"bytes each": (server.resident() - before) * 1024 / connections}
        finally:
            holder.stdin.close()
            holder.wait(30)
            time.sleep(0.2)  # The server closes its ends now, not during the next row.
    return f"memory of {connections} conn.", measure


def rows(most):
    found = [memory_row(most)]  # First: memory that a server keeps from earlier rows would hide it.
    for connections in (1, 64, 1000, 4000):
        if connections > most:
            continue
        found += [request_row(op, connections, 64) for op in
                  ("get", "set", "add", "check", "wait", "compare_set", "queue")]
        found += [request_row(op, connections, 64, 16) for op in ("multi_get", "multi_set", "wait")]
    for size in (1 << 20, 8 << 20):
        found += [request_row(op, connections, size) for op in ("set", "get", "compare_set")
                  for connections in (1, 8)]
    found += [timed_row("release of", "release", min(1000, most)),
              timed_row("connect storm of", "storm", min(1000, most)),
              timed_row("connect storm of", "storm", most)]
    return found + [torch_row(call) for call in TORCH_CALLS]


def measure(chosen, other, rounds, millis):
    """{row: {figure: {server: [values]}}}"""
    results = {}
    for turn in range(rounds):
        with Server(SERVERS["hlaunch"]) as ours, Server(SERVERS[other]) as theirs:
            pair = [("hlaunch", ours), (other, theirs)]
            for name, run in chosen:
                for which, server in pair if turn % 2 == 0 else reversed(pair):
                    print(f"round {turn + 1} of {rounds}: {which}: {name}", file=sys.stderr)
                    for figure, value in run(server, millis).items():
                        by_server = results.setdefault(name, {}).setdefault(figure, {})
                        by_server.setdefault(which, []).append(value)
    return results


def show(results, other):
    print(f"| what | figure | hlaunch | {other} | better by | lowest .. highest ratio |")
    print("|---|---|---:|---:|---:|---:|")
    for name, figures in results.items():
        for figure, values in figures.items():
            more = figure.endswith("/s")
            pairs = list(zip(values["hlaunch"], values[other]))
            ratios = [(ours / theirs if more else theirs / max(ours, 1e-9))
                      for ours, theirs in pairs]
            middle = {which: statistics.median(values[which]) for which in values}
            print(f"| {name} | {figure} | {middle['hlaunch']:,.1f} | {middle[other]:,.1f} "
                  f"| {statistics.median(ratios):.2f}x | {min(ratios):.2f} .. {max(ratios):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", default="", help="only rows whose name matches")
    parser.add_argument("--connections", type=int, default=4000, help="at most")
    parser.add_argument("--millis", type=int, default=250, help="for one figure")
    parser.add_argument("--names", action="store_true", help="let PyTorch's server look up names")
    parser.add_argument("--beside", metavar="BUILD",
                        help="build folder of another hlaunch, whose store takes torch's turns")
    parser.add_argument("--json", help="write every single figure to this file")
    args = parser.parse_args()
    if not os.access(TORCH, os.X_OK):
        print(f"skipped: there is no {TORCH}")
        sys.exit(77)
    if not args.names:
        file = tempfile.NamedTemporaryFile()  # It lives as long as this process.
        SERVERS["torch"] = [*WITHOUT_NAMES, file.name, *SERVERS["torch"]]
    other = "torch"
    if args.beside:
        other = "beside"
        SERVERS[other] = [f"{args.beside}/tests/rendezvous/c10d_server_main"]
    chosen = [row for row in rows(args.connections) if re.search(args.rows, row[0])]
    results = measure(chosen, other, args.rounds, args.millis)
    show(results, other)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
