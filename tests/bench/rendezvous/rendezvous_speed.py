#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures how many agents one rendezvous can serve, and at what cost.

    tests/bench/rendezvous/rendezvous_speed.py [--agents 64,256,1024,4096,8192] [--rounds 5]
                                               [--idle 4000] [--torch 64,256] [--beside BUILD]
                                               [--token] [--json FILE]

N agents' real streams without workers join one real rendezvous on this machine. The figures are the
time until the last agent has its assignment, and the server's cost per agent; then the share of a
core that idle agents cost. With --token it also measures, in turns, with a token, which means over
TLS; with HLAUNCH_TLS=off that is in clear. The same rounds run torchrun's c10d rendezvous if torch
is installed. Prints medians. This bench asserts nothing.
"""

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = pathlib.Path(os.environ.get("HLAUNCH_BENCH_BIN",
                                       HERE.parents[2] / "build/tests/bench/rendezvous"))
TOKEN = "0123456789abcdef" * 2
LIMIT = 120  # Seconds for one round of one size; a longer one counts as a hang.
ROWS = {"assigned_s": "until the last has its assignment, s",
        "running_s": "until all have said that they run, s",
        "server_ms": "server CPU per agent, ms",
        "client_ms": "agents' CPU per agent, ms",
        "bytes_in": "bytes to the server per agent",
        "bytes_out": "bytes from the server per agent",
        "rss_kib": "server memory per agent, KiB"}


def with_token(token):
    return {**os.environ, "HLAUNCH_TOKEN": token}


class Server:
    """The rendezvous, in a process of its own."""

    def __init__(self, agents, preflight="quick", programs=PROGRAMS, token=""):
        self.process = subprocess.Popen([str(programs / "rendezvous_bench_server"), str(agents),
                                         preflight],
                                        env=with_token(token), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def cost(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.process.wait(LIMIT) != 0:
            raise SystemExit(f"the server ended with {self.process.returncode}")


class Agents:
    """The other ends of `count` streams, in one process."""

    def __init__(self, port, count, threads, programs=PROGRAMS, token=""):
        self.process = subprocess.Popen(
            [str(programs / "rendezvous_bench_agents"), str(port), str(count), str(threads)],
            env=with_token(token), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the agents ended with {self.process.wait()}")
        self.figures = json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is not None:
            raise SystemExit(f"the agents ended with {self.process.returncode}")
        self.process.stdin.close()
        self.process.wait(LIMIT)


def join(count, threads, preflight, programs=PROGRAMS, token=""):
    """Runs one job of `count` agents, from nothing until it runs."""
    with Server(count, preflight, programs, token) as server:
        before = server.cost()
        with Agents(server.port, count, threads, programs, token) as agents:
            after = server.cost()
            if after["streams"] != count:
                raise SystemExit(f"{after['streams']} of {count} streams are left")
            figures = {name: agents.figures[name] for name in ("assigned_s", "running_s")}
            figures["client_ms"] = agents.figures["cpu_ms"] / count
            figures["server_ms"] = (after["cpu_ms"] - before["cpu_ms"]) / count
            for name in ("bytes_in", "bytes_out", "rss_kib"):
                figures[name] = (after[name] - before[name]) / count
            return figures


def idle(count, threads, seconds, token=""):
    """While `count` agents run: percent of a core, bytes per agent and second, and KiB of the
    server per agent."""
    with Server(count, token=token) as server:
        empty = server.cost()["rss_kib"]
        with Agents(server.port, count, threads, token=token):
            figures = idle_figures(server, count, seconds)
            return {**figures, "rss_kib": (server.cost()["rss_kib"] - empty) / count}


def idle_figures(server, count, seconds):
    time.sleep(2)  # Wait for the end of what the start caused.
    before, began = server.cost(), time.monotonic()
    time.sleep(seconds)
    after, took = server.cost(), time.monotonic() - began
    if after["streams"] != count:
        raise SystemExit(f"{after['streams']} of {count} streams are left")
    traffic = sum(after[name] - before[name] for name in ("bytes_in", "bytes_out"))
    return {"percent": (after["cpu_ms"] - before["cpu_ms"]) / took / 10,
            "bytes_per_s": traffic / took / count}


def torch_python():
    cached = pathlib.Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser()
    return pathlib.Path(os.environ.get("HLAUNCH_TORCH2_PYTHON",
                                       cached / "hlaunch/torch-newest/bin/python"))


def torch_join(count):
    """The figures of one run, or None if it takes longer than LIMIT."""
    with subprocess.Popen([str(torch_python()), str(HERE / "torch_rendezvous.py"), str(count)],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          start_new_session=True) as program:
        try:
            out, _ = program.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)  # This also kills its nodes.
            return None
    if program.returncode != 0:
        raise SystemExit(f"torch_rendezvous.py {count} ended with {program.returncode}")
    return json.loads(out)


def print_joins(who, figures, sizes):
    print("| " + f"{who}, medians".ljust(38) + " |" + "".join(f" N = {n:<6} |" for n in sizes))
    print(f"|{'-' * 40}|" + f"{'-' * 12}|" * len(sizes))
    for name, text in ROWS.items():
        medians = [statistics.median(one[name] for one in figures[n]) for n in sizes]
        print(f"| {text:38} |" + "".join(f" {median:10.4g} |" for median in medians))


def print_torch(figures, sizes):
    for n in sizes:
        if None in figures[n]:
            print(f"torchrun's c10d rendezvous, {n} nodes: not done within {LIMIT} s")
            continue
        time_s, cpu = (statistics.median(one[name] for one in figures[n])
                       for name in ("assigned_s", "server_cpu_ms"))
        print(f"torchrun's c10d rendezvous, {n} nodes: {time_s:.3g} s until the last has its rank, "
              f"{cpu / n:.3g} ms of the store's CPU per node")


def print_idle(who, figures):
    for n, one in figures.items():
        print(f"{who}, {n} idle agents: {one['percent']:.2f} % of a core, "
              f"{one['bytes_per_s']:.1f} bytes per agent and second, {one['rss_kib']:.1f} KiB of the "
              "server for each")


def numbers(text):
    return [int(n) for n in text.split(",") if n]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--agents", type=numbers, default="64,256,1024,4096,8192")
    parser.add_argument("--threads", type=int, default=1, help="of the agents' process")
    parser.add_argument("--preflight", choices=("quick", "off"), default="quick",
                        help="off: agents are assigned without the exchange that checks a round")
    parser.add_argument("--idle", type=numbers, default="4000")
    parser.add_argument("--idle-seconds", type=float, default=20)
    parser.add_argument("--torch", type=numbers, default="64,256")
    parser.add_argument("--beside", metavar="BUILD", help="build folder of another hlaunch")
    parser.add_argument("--token", action="store_true", help="measure with a token, too, over TLS")
    parser.add_argument("--json", help="write every single figure to this file")
    args = parser.parse_args()
    if not os.access(torch_python(), os.X_OK):
        args.torch = []

    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}, {args.rounds} rounds, "
          f"preflight {args.preflight}\n")
    record = {"join": {n: [] for n in args.agents}, "beside": {n: [] for n in args.agents},
              "token": {n: [] for n in args.agents},
              "torch": {n: [] for n in args.torch}}
    beside = pathlib.Path(args.beside or "") / "tests/bench/rendezvous"
    for _ in range(args.rounds):
        for n in args.agents:
            record["join"][n].append(join(n, args.threads, args.preflight))
            if args.beside:
                record["beside"][n].append(join(n, args.threads, args.preflight, beside))
            if args.token:
                record["token"][n].append(join(n, args.threads, args.preflight, token=TOKEN))
        for n in args.torch:
            if None not in record["torch"][n]:  # A size that takes too long is tried once.
                record["torch"][n].append(torch_join(n))
    if args.agents:
        print_joins("hlaunch", record["join"], args.agents)
    if args.agents and args.beside:
        print_joins("the one beside", record["beside"], args.agents)
    if args.agents and args.token:
        print_joins("with a token", record["token"], args.agents)
    print_torch(record["torch"], args.torch)
    for name, token in (("idle", ""), ("idle_token", TOKEN))[:1 + args.token]:
        record[name] = {n: idle(n, args.threads, args.idle_seconds, token) for n in args.idle}
        print_idle("with a token" if token else "hlaunch", record[name])
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
