#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors

"""Compares hlaunch's collectives with Open MPI, MPICH (C against C++) and Gloo (through torch).

All take turns within every round, on the same machine, with the same verbs, sizes and numbers of
ranks. It prints medians over rounds. A ratio of 2.00x means twice the time of hlaunch.
"""

import argparse
import json
import os
import pathlib
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
VERBS = ["barrier", "ping_pong", "all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"]
SIZES = [8, 1024, 32 << 10, 256 << 10, 1 << 20, 16 << 20, 64 << 20]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def times_of(name, size, ranks):
    """Calls per measurement: enough for tens of milliseconds, fewer where one takes much longer."""
    times = (64 << 20) // max(size, 8 << 10) // 4
    crowded = ranks > (os.cpu_count() or 1)
    slowness = (4 if crowded else 1) * (20 if name == "Gloo" or (name == "MPICH" and crowded) else 1)
    return max(3, times // slowness)


class Hosts:
    """Two hosts as network namespaces with a veth pair between them."""

    def __init__(self):
        self.names = [f"comm-speed-{os.getpid()}-{i}" for i in range(2)]
        self.addresses = ["10.213.7.1", "10.213.7.2"]

    def __enter__(self):
        run = lambda *command: subprocess.run(command, check=True)
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "c0", "netns", self.names[0], "type", "veth", "peer", "name", "c0",
            "netns", self.names[1])
        for name, address in zip(self.names, self.addresses):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "c0")
            run("ip", "-n", name, "link", "set", "c0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def inside(self, rank):
        """The prefix of a command on the rank's host. MPI tells hosts apart by their names."""
        return ["ip", "netns", "exec", self.names[rank % 2], "unshare", "--uts", "sh", "-c",
                f'hostname host{rank % 2}; exec "$0" "$@"']

    def remote_shell(self, work):
        """A script that mpirun uses like ssh: it enters the host with that address."""
        script = work / "enter"
        lines = ["#!/bin/sh", '[ "$1" = -x ] && shift', "host=$1; shift", "case $host in"]
        lines += [f"{address}) exec {shlex.join(self.inside(i))} sh -c \"$*\";;"
                  for i, address in enumerate(self.addresses)]
        script.write_text("\n".join([*lines, "esac", "exit 9"]) + "\n", encoding="utf-8")
        script.chmod(0o755)
        return str(script)


def by_environment(command, ranks, hosts, master="127.0.0.1"):
    """Runs one process for each rank as a launcher does; returns the lines of rank 0, and the
    reason if there are none."""
    port = free_port()
    processes = []
    for rank in range(ranks):
        environment = dict(
            os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank),
            LOCAL_WORLD_SIZE=str(ranks if hosts is None else -(-ranks // 2)),
            MASTER_ADDR=master if hosts is None else hosts.addresses[0],
            MASTER_PORT=str(port), OMP_NUM_THREADS="1")
        if hosts is not None:
            environment["GLOO_SOCKET_IFNAME"] = "c0"
            environment["HLAUNCH_SOCKET_IFNAME"] = "c0"
        prefix = [] if hosts is None else hosts.inside(rank)
        processes.append(subprocess.Popen(
            prefix + command, env=environment, text=True,
            stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE))
    try:
        outputs = [process.communicate(timeout=300) for process in processes]
    except subprocess.TimeoutExpired:
        for process in processes:
            process.kill()
            process.communicate()
        return [], "no end after 300 s"
    if any(process.returncode for process in processes):
        return [], outputs[0][1].strip()[-200:]
    return outputs[0][0].splitlines(), ""


def open_mpi(work, ranks, hosts):
    command = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    if hosts is None:
        return command
    each = ",".join(f"{address}:{-(-ranks // 2)}" for address in hosts.addresses)
    return hosts.inside(0) + command + [
        "--mca", "plm_rsh_agent", hosts.remote_shell(work), "--mca", "oob_tcp_if_include", "c0",
        "--mca", "btl_tcp_if_include", "c0", "--mca", "btl", "tcp,vader,self", "--host", each,
        "--map-by", "node"]


def mpich(work, ranks, hosts):
    if hosts is None:
        return ["mpirun.mpich", "-n", str(ranks)]
    return hosts.inside(0) + [
        "mpiexec.hydra", "-iface", "c0", "-launcher", "ssh", "-launcher-exec",
        hosts.remote_shell(work), "-hosts", ",".join(hosts.addresses), "-ppn", "1", "-n", str(ranks)]


def by_mpirun(command, program, hosts):
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if hosts is not None:  # MPICH detects that namespaces share memory, unless told not to.
        environment.update(UCX_NET_DEVICES="c0", UCX_TLS="tcp,self", MPIR_CVAR_NOLOCAL="1")
    try:
        result = subprocess.run(command + program, env=environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300,
                                check=False)
    except subprocess.TimeoutExpired:
        return [], "no end after 300 s"
    if result.returncode:
        return [], result.stderr.strip()[-200:]
    return result.stdout.splitlines(), ""


def contenders(build, beside, work, only, torch):
    """By name: a function that runs (words, ranks, hosts)."""
    found = {}
    load = str(build / "tests/bench/comm/comm_load")
    found["hlaunch"] = lambda words, ranks, hosts: by_environment([load] + words, ranks, hosts)
    if beside:
        other = str(beside / "tests/bench/comm/comm_load")
        found["beside"] = lambda words, ranks, hosts: by_environment([other] + words, ranks, hosts)
    for name, compiler, mpirun in [("Open MPI", "mpicc.openmpi", open_mpi),
                                   ("MPICH", "mpicc.mpich", mpich)]:
        if not shutil.which(compiler) or not shutil.which(mpirun(work, 1, None)[0]):
            print(f"{name}: not installed", file=sys.stderr)
            continue
        program = work / compiler
        built = subprocess.run([compiler, "-O2", "-o", program, HERE / "mpi_load.c"], check=False,
                               stderr=subprocess.PIPE, text=True)
        if built.returncode:
            print(f"{name}: {built.stderr.splitlines()[0]} (apt install libopenmpi-dev libmpich-dev)",
                  file=sys.stderr)
            continue
        found[name] = (lambda words, ranks, hosts, mpirun=mpirun, program=program:
                       by_mpirun(mpirun(work, ranks, hosts), [str(program)] + words, hosts))
    if torch:
        found["Gloo"] = lambda words, ranks, hosts: by_environment(
            [torch, str(HERE / "gloo_load.py")] + words, ranks, hosts)
    return {name: run for name, run in found.items() if only is None or name in only
            or name in ("hlaunch", "beside")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--beside", type=pathlib.Path, metavar="BUILD", help="another hlaunch's build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--verbs", default=",".join(VERBS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--ranks", default=f"2,{2 * (os.cpu_count() or 1)}")
    parser.add_argument("--over", choices=["memory", "tcp"], default="memory",
                        help="tcp: between two network namespaces")
    parser.add_argument("--only", help="of Open MPI, MPICH, Gloo: these, separated by commas")
    parser.add_argument("--torch", default=os.environ.get("HLAUNCH_TORCH2_PYTHON"),
                        help="a Python that has torch, for Gloo")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()

    results = []
    with tempfile.TemporaryDirectory() as work:
        runs = contenders(arguments.build, arguments.beside, pathlib.Path(work),
                          arguments.only and arguments.only.split(","), arguments.torch)
        hosts = Hosts() if arguments.over == "tcp" else None
        if hosts:
            hosts.__enter__()
        try:
            print(f"{'verb':15}{'bytes':>10} {'ranks':>5}"
                  + "".join(f"{name:>21}" for name in runs), flush=True)
            rows = [(verb, size) for verb in arguments.verbs.split(",")
                    for size in ([0] if verb == "barrier" else map(int, arguments.sizes.split(",")))]
            for ranks in map(int, arguments.ranks.split(",")):
                for row in measure(runs, rows, ranks, hosts, arguments.rounds):
                    results.append(row)
                    print_row(row, runs)
        finally:
            if hosts:
                hosts.__exit__()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


def measure(runs, rows, ranks, hosts, rounds):
    figures = {name: [[] for _ in rows] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            print(f"  {ranks} ranks, round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
            words = [str(word) for verb, size in rows
                     for word in (verb, size, times_of(name, size, ranks))]
            lines, why = run(words, ranks, hosts)
            if len(lines) != len(rows):
                print(f"  {name}: {why or lines}", file=sys.stderr)
                continue
            for line, row in zip(lines, figures[name]):
                if not line.startswith("-"):
                    row.append(float(line))
    return [{"verb": verb, "bytes": size, "ranks": ranks,
             "micros": {name: statistics.median(row[i]) if row[i] else None
                        for name, row in figures.items()},
             "rounds": {name: row[i] for name, row in figures.items()}}
            for i, (verb, size) in enumerate(rows)]


def print_row(row, runs):
    mine = row["micros"]["hlaunch"]
    cells = []
    for name in runs:
        micros = row["micros"][name]
        ratio = "" if name == "hlaunch" or micros is None or not mine else f" {micros / mine:6.2f}x"
        cells.append(f"{'-' if micros is None else f'{micros:.1f} us'}{ratio}".rjust(21))
    print(f"{row['verb']:15}{row['bytes']:>10} {row['ranks']:>5}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
