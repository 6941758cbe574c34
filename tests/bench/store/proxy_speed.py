#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures what --store-proxy saves the master store, and what it costs a request, on this machine.

    tests/bench/store/proxy_speed.py [--nodes 8] [--workers 64] [--rounds 5] [--millis 400]

The same load reaches one store directly, through a proxy for each node, and through one that
encrypts, in turns. All of them share this machine's processors, also the proxies, which have their
own in a cluster: requests per second and latency are worse here than there. Connections and CPU are
the store's own. This bench asserts nothing.
"""

import argparse
import os
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("HLAUNCH_BUILD", ROOT / "build"))
STORE = str(BUILD / "tests/rendezvous/c10d_server_main")
PROXY = str(BUILD / "tests/bench/store/store_proxy_main")
LOAD = str(BUILD / "tests/bench/store/store_load")
SECRET = "a secret of this round"
ROWS = [("get", 64, 1), ("add", 64, 1), ("check", 64, 1), ("multi_get", 64, 16), ("get", 65536, 1)]


def serve(*command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return server, int(server.stdout.readline())


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def connections(port):
    """The number of established connections of this local port, IPv4 and IPv6."""
    lines = [line.split() for name in ("tcp", "tcp6")
             for line in pathlib.Path("/proc/net", name).read_text(encoding="ascii").splitlines()]
    return sum(words[3] == "01" and words[1].endswith(f":{port:04X}") for words in lines)


def loads(ports, pid, row, options):
    """Runs one row on all nodes at once: (requests per second, median p50, worst p99)."""
    op, size, keys = row
    running = [subprocess.Popen([LOAD, str(port), "requests", op, str(options.workers),
                                 str(options.millis), str(size), str(keys), str(pid)],
                                stdout=subprocess.PIPE, text=True) for port in ports]
    told = [[float(word) for word in run.communicate()[0].split()] for run in running]
    rate = sum(words[0] for words in told)
    return rate, statistics.median(words[1] for words in told), max(words[2] for words in told)


def measure(ports, server, port, row, options):
    before = cpu_seconds(server.pid)
    rate, p50, p99 = loads(ports, server.pid, row, options)
    spent = cpu_seconds(server.pid) - before
    return rate, p50, p99, spent * 1e6 / (rate * options.millis / 1e3)


def count_connections(ports, port, options):
    holds = [subprocess.Popen([LOAD, str(each), "hold", str(options.workers)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
             for each in ports]
    for hold in holds:
        hold.stdout.readline()
    count = connections(port)
    for hold in holds:
        hold.stdin.close()
        hold.wait()
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--millis", type=int, default=400)
    options = parser.parse_args()
    server, port = serve(STORE, "auto", SECRET)
    proxies = [serve(PROXY, str(port)) for _ in range(options.nodes)]
    sealed = [serve(PROXY, str(port), SECRET) for _ in range(options.nodes)]
    ways = {"direct": [port] * options.nodes, "proxy": [its for _, its in proxies],
            "sealed": [its for _, its in sealed]}
    for way, ports in ways.items():
        print(f"{way}: {count_connections(ports, port, options)} connections at the store")
    print(f"{'':28}{'requests/s':>12}{'p50 us':>10}{'p99 us':>10}{'store CPU us':>14}")
    for row in ROWS:
        found = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, ports in ways.items():
                found[way].append(measure(ports, server, port, row, options))
        for way, rows in found.items():
            rate, p50, p99, cpu = (statistics.median(column) for column in zip(*rows))
            name = f"{row[0]} {row[1]} B x {row[2]}, {way}"
            print(f"{name:28}{rate:12.0f}{p50:10.0f}{p99:10.0f}{cpu:14.2f}")
    for process, _ in [*proxies, *sealed, (server, port)]:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
