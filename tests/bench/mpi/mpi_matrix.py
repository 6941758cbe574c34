#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs each MPI of this machine under hlaunch, in each way that hlaunch has, on 1, 2 and 4 hosts.

    tests/bench/mpi/mpi_matrix.py [--wheels DIR] [--hosts 1,2,4] [--mpi TEXT] [--way TEXT]
                                  [--cases hello,abort] [--json FILE]

Hosts are namespaces with their own /dev/shm and /tmp, in which nothing may be left. Prints a row
for each MPI, way, number of hosts and case: whether it did what launcher/manual/mpi.md says, and
the seconds; then a table of all rows. Exits with 1 if a case failed. Needs root.

Ways: `fd` and `port` are PMI-1 by a descriptor and, behind a shell, by a port; `pmix` is the way of
Open MPI; `both` is mpi4py, where hlaunch cannot see which MPI the program will use.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))
import lab  # noqa: E402
import mpi_installations  # noqa: E402

LIMIT = 60  # Seconds for a job; a longer one counts as a hang.
# Namespaces as hosts have only TCP between them, and UCX takes all of them for one machine.
BETWEEN_HOSTS = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0", "FI_PROVIDER": "tcp",
                 "FI_TCP_IFACE": "eth0", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "eth0"}
ON_ONE_HOST = {"UCX_TLS": "sm,self", "OMPI_MCA_pml": "ob1", "FI_PROVIDER": "tcp"}
# Bytes and repetitions for mpi_load.c. Half of a ping-pong is the latency.
MEASURED = ["ping", "8", "200", "ping", "1048576", "20", "all_reduce", "8", "200"]


@dataclasses.dataclass
class Case:
    name: str
    word: str = ""  # The argument of mpi_worker.c.
    codes: tuple = (0,)
    said: str = ""  # A pattern in hlaunch's output.
    rounds: int = 1  # How often all ranks print their line; 0 if some do not.
    options: tuple = ()


CASES = [
    Case("hello"),
    Case("measure", word="measure", rounds=0),
    Case("abort", "abort", (7,), r"rank 1 called MPI_Abort\(7\)", 0),
    Case("no Init", "exit-before-init", (1,), r"rank \d+ exited with code 0 before MPI_Init", 0),
    Case("no Finalize", "exit-before-finalize", (1,),
         r"rank 1 exited with code 0 before MPI_Finalize", 0),
    Case("killed", "kill", (137,), r"rank 1 .*(SIGKILL|code 137)", 0),
    Case("again", "kill", rounds=2, options=("--max-restarts", "1")),
    Case("64 ranks"),
]


@dataclasses.dataclass
class Row:
    mpi: str
    way: str
    hosts: int
    case: str
    good: bool
    seconds: float
    note: str


class Hosts:
    """A lab whose nodes have their own /dev/shm and /tmp."""

    def __init__(self, count):
        self.lab = lab.Lab(count)
        self.nodes = self.lab.nodes
        for node in self.nodes:
            for place in "/dev/shm", "/tmp":
                node.run("mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", place, cwd="/")

    def left(self):
        """The files and processes that are left on the nodes."""
        found = []
        for node in self.nodes:
            for place in "dev/shm", "tmp":
                folder = pathlib.Path(f"/proc/{node.init}/root", place)
                found += [f"{node.name}: /{place}/{path.name}" for path in folder.iterdir()]
            found += [f"{node.name}: {line}" for line in node.left_over().values()]
        return found

    def sweep(self):
        for node in self.nodes:
            node.run("find", "/tmp", "/dev/shm", "-mindepth", "1", "-delete", cwd="/")


def wait_for_all(runs, limit, all_said=lambda: False):
    """Whether all end within `limit`, or within 15 s once all ranks have printed their line."""
    deadline, said = time.monotonic() + limit, False
    while any(run.process.poll() is None for run in runs) and time.monotonic() < deadline:
        time.sleep(0.01)
        if not said and all_said():
            deadline, said = min(deadline, time.monotonic() + 15), True
    return all(run.process.poll() is not None for run in runs)


def end(runs):
    for number in signal.SIGTERM, signal.SIGKILL:
        for run in runs:
            if run.process.poll() is None:
                run.signal(number)
        if wait_for_all(runs, 40):
            return


def command(mpi, way, case, programs):
    if way == "both":
        return [mpi.python, str(lab.WORKERS / "mpi_worker.py"), case.word]
    words = [programs["load"], *MEASURED] if case.word == "measure" else [programs["worker"],
                                                                          case.word]
    return ["sh", "-c", '"$@"; exit $?', "sh", *words] if way == "port" else words


def nproc(case, hosts):
    if case.word == "measure":
        return 2 if hosts == 1 else 1
    return 64 // hosts if case.name == "64 ranks" else 4 if hosts == 1 else 2


def start(hosts, mpi, way, case, programs):
    count = len(hosts.nodes)
    meet = ["--nnodes", count, "--rdzv-endpoint", "node0:29400"] if count > 1 else []
    wires = BETWEEN_HOSTS if count > 1 else ON_ONE_HOST
    env = {**wires, **mpi.env, **(mpi.python_env if way == "both" else {}),
           "OMPI_ALLOW_RUN_AS_ROOT": "1"}
    return [node.start(lab.HLAUNCH, *meet, "--nproc-per-node", nproc(case, count), *case.options,
                       *command(mpi, way, case, programs), env=env, cwd="/")
            for node in hosts.nodes]


def figures(out):
    """The figures of mpi_load.c as readable text."""
    found = [float(text) for text in re.findall(r"^(?:\[0\] )?(\d+\.\d+)$", out, re.MULTILINE)]
    if len(found) != 3:
        return None
    return (f"latency {found[0] / 2:.1f} us, {1048576 / (found[1] / 2):.0f} MB/s, "
            f"all_reduce {found[2]:.1f} us")


def worlds(out, size, local):
    """How often all ranks have printed their line; -1 if a line is wrong."""
    said = re.findall(r"MPI rank (\d+) of (\d+), (\d+) here, after (\d+), sum (\d+)", out)
    right = [rank for rank in range(size)
             for line in said if line == (str(rank), str(size), str(local),
                                          str((rank - 1) % size), str(size * (size - 1) // 2))]
    return min(right.count(rank) for rank in range(size)) if len(right) == len(said) else -1


def complete_in(case, runs):
    """Whether all ranks have printed their line as often as the case expects."""
    local = nproc(case, len(runs))
    return worlds("".join(run.out for run in runs), local * len(runs), local) == case.rounds


def judge(case, runs, ended):
    """(whether the result is as the manual says, a note)."""
    out, err = "".join(run.out for run in runs), "".join(run.err for run in runs)
    complete = case.rounds == 0 or complete_in(case, runs)
    if not ended:
        where = "MPI_Finalize" if case.rounds and complete else "the job"
        return False, f"{where} hangs"
    codes = [run.process.returncode for run in runs]
    if any(code not in case.codes for code in codes):
        return False, f"exit codes {codes}: {err.strip()[-300:]}"
    if not complete:
        return False, f"ranks say: {out[-300:]}"
    if case.said and not re.search(case.said, err):
        return False, f"hlaunch says: {err.strip()[-300:]}"
    if case.word == "measure":
        note = figures(out)
        return note is not None, note or out[-300:]
    return True, ""


def one(hosts, mpi, way, case, programs):
    began = time.perf_counter()
    runs = start(hosts, mpi, way, case, programs)
    ended = wait_for_all(runs, LIMIT, lambda: case.rounds > 0 and complete_in(case, runs))
    seconds = time.perf_counter() - began
    good, note = judge(case, runs, ended)
    if not ended:
        end(runs)
    left = hosts.left()
    if left and ended:
        good, note = False, f"{note} left: {left[:6]}"
    hosts.sweep()
    return Row(mpi.name, way, len(hosts.nodes), case.name, good, seconds, " ".join(note.split()))


def cases_of(way, wanted):
    chosen = [case for case in CASES if not wanted or case.name in wanted]
    return [case for case in chosen if way != "both" or case.name in ("hello", "abort", "again")]


def measure(mpis, args, folder):
    programs = {mpi.name: {"worker": mpi.build(ROOT / "tests/workers/mpi_worker.c", folder),
                           "load": mpi.build(ROOT / "tests/bench/comm/mpi_load.c", folder)}
                for mpi in mpis}
    for count in map(int, args.hosts.split(",")):
        hosts = Hosts(count)
        try:
            for mpi in mpis:
                ways = ["pmix"] if mpi.pmix else ["fd", "port"]
                for way in [*ways, *["both"] * bool(mpi.python)]:
                    if args.way not in ("", way):
                        continue
                    for case in cases_of(way, args.cases):
                        yield one(hosts, mpi, way, case, programs[mpi.name])
        finally:
            hosts.lab.close()


def print_table(rows):
    names = [case.name for case in CASES]
    print(f"\n| MPI | way | hosts | {' | '.join(names)} |\n|{'---|' * (len(names) + 3)}")
    cells = {(row.mpi, row.way, row.hosts, row.case): f"{'' if row.good else 'FAIL '}"
             f"{row.seconds:.1f}" for row in rows}
    for key in dict.fromkeys((row.mpi, row.way, row.hosts) for row in rows):
        print(f"| {' | '.join(map(str, key))} | "
              + " | ".join(cells.get((*key, name), "-") for name in names) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", type=pathlib.Path, action="append", default=[],
                        help="a folder of environments PACKAGE-VERSION, beside tests/run's own")
    parser.add_argument("--hosts", default="1,2,4")
    parser.add_argument("--mpi", default="", help="only those whose name contains this")
    parser.add_argument("--way", default="", help="only this one")
    parser.add_argument("--cases", type=lambda text: text.split(","), default=[])
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="hlaunch-mpi-") as scratch:
        folder = pathlib.Path(scratch)
        mpis = [mpi for mpi in mpi_installations.find([mpi_installations.CACHE, *args.wheels],
                                                      folder) if args.mpi in mpi.name]
        for row in measure(mpis, args, folder):
            rows.append(row)
            print(f"{row.mpi:18} {row.way:5} {row.hosts} host(s) {row.case:12} "
                  f"{'pass' if row.good else 'FAIL'} {row.seconds:6.2f} s  {row.note}", flush=True)
    print_table(rows)
    if args.json:
        args.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n",
                             encoding="utf-8")
    sys.exit(not all(row.good for row in rows))


if __name__ == "__main__":
    main()
