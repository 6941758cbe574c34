#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures what hlaunch reports about planted hangs, and whether it suspects healthy programs.

    tests/bench/hang/attribution.py [-j 8] [--kind hangs|healthy] [--only PATTERN] [--json FILE]
                                    [--backend gloo|hlaunch|cpu:hlaunch|cpu:hlaunch,cuda:gloo]

With the torch of HLAUNCH_TORCH2_PYTHON, in ranks that do not know hlaunch, on hosts made of
namespaces, which takes root. A report of a hang is right if it names exactly the ranks that hold up the others, with their
hosts, the collective and the user's own function. Hangs have --hang-timeout 4; healthy programs
have the default unless a row says otherwise. What hlaunch's own collectives find out at once is no
hang: there the report of the failure is judged. This bench asserts nothing.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

import lab  # noqa: E402
import torch_test  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
BACKEND = "gloo"  # Of --backend.
LIMIT = 120  # Seconds within which a hang is planted, and within which a healthy program ends.
PATIENCE = 40  # Seconds within which a hang is reported.
TOLD = re.compile(r"no rank has gone on for \d+ s.*(?:\n  .*)*")
FAILED = re.compile(r"job failed: .*(?:\n.*)*")
NAMED = re.compile(r"^  rank (\d+) \((?:(\S+), )?local rank \d+, pid \d+\) (.*)", re.MULTILINE)


@dataclasses.dataclass
class Plant:
    """A hang, and patterns that its report should match."""

    mode: str
    hosts: int = 1
    nproc: int = 4
    culprits: tuple = (2,)  # Empty if no rank is at fault.
    says: str = r"3 of 4 ranks are in all_reduce number 4 of default_pg"
    does: str = "stands"
    place: str = ""  # Empty if the function has the mode's name.
    options: tuple = ()
    raises: str = ""  # The report's first line where hlaunch's collectives find it by themselves.
    own: str = ""  # Instead of `says` with hlaunch's collectives; "-": they do not hang.

    @property
    def name(self):
        return self.mode + (f", {self.hosts} hosts" if self.hosts > 1 else "")


def is_in(collective, number, of="default_pg", count="3 of 4"):
    return rf"{count} ranks (is|are) in {collective} number {number} of {of}"


THREE = {"hosts": 3, "nproc": 1, "says": is_in("all_reduce", 4, count="2 of 3")}
TWO = {"hosts": 2, "nproc": 2}
STORE = "Ranks 0,1,3 wait for the master store"
# Two groups wait for the rank: its column for this step, its row for the next one.
MESH = r"3 of 4 ranks are in all_reduce number (5 of column|6 of row)1"
CROSSED = {"culprits": (), "says": "different orders", "place": "crossed", "does": ""}
DIFFERENT = r"job failed: .*[Rr]ank 2\b"
PLANTS = [
    Plant("sleep"), Plant("sleep", **TWO), Plant("sleep", **THREE),
    Plant("interpreter", does="holds the interpreter"),
    Plant("interpreter", does="holds the interpreter", **TWO),
    Plant("regex", does="holds the interpreter"),
    Plant("c_loop", does="computes"),
    Plant("c_loop_in_interpreter", does="holds the interpreter"),
    Plant("python_loop", does="computes"),
    Plant("stopped", does=r"is stopped", place="-"),
    Plant("stopped", does=r"is stopped", place="-", **TWO),
    Plant("kernel", does="is stuck in the kernel"),
    Plant("loader"), Plant("loader", **THREE), Plant("deadlock"), Plant("answer"), Plant("pipe"),
    Plant("child"), Plant("stdin"), Plant("open_file"), Plant("empty_queue"), Plant("locked_file"),
    Plant("last_thread", place="-"), Plant("at_exit", place="sleep"),
    Plant("early_exit", does="has exited with 0", place="-"),
    Plant("early_exit", does="has exited with 0", place="-", **THREE),
    Plant("recv_of_nobody", does="waits for another rank"),
    Plant("key_of_one", does="waits for the master store"),
    Plant("broadcast", says="different collectives as number 4 of default_pg", does="differs",
          raises=DIFFERENT),
    Plant("barrier", says="different collectives as number 4 of default_pg", does="differs",
          raises=DIFFERENT),
    Plant("sizes", says="different collectives as number 4 of default_pg", does="differs",
          raises=DIFFERENT),
    Plant("started_only", says=is_in("all_reduce", 5)),
    Plant("first_step", says=is_in("all_reduce", 1)),
    Plant("first_step", hosts=2, nproc=2, says=is_in("all_reduce", 1)),
    Plant("before_init", says=STORE, own=is_in("all_reduce", 1)),
    Plant("before_init", hosts=3, nproc=1, says="Ranks 0,1 wait for the master store",
          own=is_in("all_reduce", 1, count="2 of 3")),
    Plant("before_torch", says=STORE, place="-", does="", own=is_in("all_reduce", 1)),
    Plant("before_torch", hosts=3, nproc=1, says="Ranks 0,1 wait for the master store", place="-",
          does="", own=is_in("all_reduce", 1, count="2 of 3")),
    Plant("checkpoint", culprits=(0,), says=is_in("barrier", 6), does="holds the interpreter"),
    Plant("crossed", **CROSSED), Plant("crossed", hosts=3, nproc=1, **CROSSED),
    Plant("key_of_all", culprits=(), place="key_of_one", does="waits for the master store",
          says="Ranks 0-3 wait for the master store, for keys that nobody has set"),
    Plant("new_group_of_most", says=STORE, place="steps", own="-"),
    Plant("recv_ring", culprits=(), says="Ranks 0-3 wait for other ranks",
          does="waits for another"),
    Plant("recv_of_odd", says=is_in("all_reduce", 4, count="2 of 4")),
    Plant("pipeline", says="Ranks 0,1,3 wait for other ranks"),
    Plant("monitored", says="Ranks 0,1,3 wait for other ranks", own=is_in("monitored_barrier", 4)),
    Plant("two_ranks", culprits=(1, 3), says=is_in("all_reduce", 4, count="2 of 4")),
    Plant("stages", says=is_in("all_reduce", 4, count="2 of 4")),
    Plant("stages", says=is_in("all_reduce", 4, count="2 of 4"), **TWO),
    Plant("mesh", nproc=16, culprits=(5,), says=MESH),
    Plant("mesh", hosts=2, nproc=8, culprits=(5,), says=MESH),
    Plant("parallel_data", says=r"3 of 4 ranks are in \w+ number \d+ of default_pg",
          place="forward"),
    Plant("objects", says=r"3 of 4 ranks are in \w+ number 3 of default_pg"),
    Plant("second_round", options=("--max-restarts", 1)),
    Plant("second_round", hosts=2, nproc=2, options=("--max-restarts", 1)),
]


@dataclasses.dataclass
class Healthy:
    """A healthy program."""

    mode: str
    hosts: int = 1
    options: tuple = ()
    suspended: int = 0  # Seconds for which all its processes are stopped from outside.

    @property
    def name(self):
        words = [f"{self.hosts} hosts"] if self.hosts > 1 else []
        words += ["suspended as a whole"] if self.suspended else []
        return ", ".join([self.mode, *words, " ".join(map(str, self.options))]).rstrip(", ")


SOON = ("--hang-timeout", 4)
HEALTHY = [
    *map(Healthy, ("no_torch", "no_group", "late_start", "compile_all", "compile_one", "first_step",
                   "late_rank", "slow_steps", "long_pause", "checkpoint", "quiet_checkpoint",
                   "validation", "pipeline", "ring", "server", "debugger", "all_stopped",
                   "two_groups", "download", "growing_steps")),
    Healthy("short_steps", suspended=45), Healthy("short_steps", hosts=2),
    Healthy("pipeline", hosts=2), Healthy("compile_one", hosts=2), Healthy("no_torch", hosts=2),
    Healthy("short_steps", options=SOON), Healthy("ring", options=SOON),
    Healthy("no_torch", options=SOON), Healthy("no_group", options=SOON),
    Healthy("debugger", options=SOON), Healthy("all_stopped", options=SOON),
    Healthy("long_pause", options=SOON), Healthy("short_steps", hosts=2, options=SOON),
    Healthy("ring", hosts=2, options=SOON),
]


def start(hosts, script, case, options):
    """The runs of the job, one for each of the lab's nodes."""
    nproc = getattr(case, "nproc", 4 // case.hosts)
    meet = ["--nnodes", case.hosts, "--rdzv-endpoint", "node0:29400"] if case.hosts > 1 else []
    env = {"PYTHON_EXEC": torch_test.Torch2.python(), "OMP_NUM_THREADS": 1}
    if "hlaunch" in BACKEND:
        env |= {"PLANT_BACKEND": BACKEND, "PYTHONPATH": lab.BIN.parent / "python"}
    return [node.start(lab.HLAUNCH, *meet, "--nproc-per-node", nproc, *options, *case.options,
                       HERE / script, case.mode, env=env) for node in hosts.nodes]


def wait(runs, condition, limit=LIMIT):
    """Waits until the condition holds, the job has ended, or `limit` is over."""
    deadline = time.monotonic() + limit
    while not (value := condition()) and time.monotonic() < deadline:
        if all(run.process.poll() is not None for run in runs):
            return condition()
        time.sleep(0.05)
    return value


def judge(plant, told):
    """Which facts in the text are right."""
    named = {int(rank): (host, does) for rank, host, does in NAMED.findall(told)}
    wanted = {rank: named.get(rank) for rank in plant.culprits or named}
    place = plant.place or plant.mode
    return {
        "rank": set(named) == set(plant.culprits) if plant.culprits else
                bool(re.search(plant.says, told)),
        "host": bool(wanted) and all(found and found[0] == f"node{rank // plant.nproc}"
                                     for rank, found in wanted.items()),
        "collective": bool(re.search(plant.says, told)),
        "does": bool(wanted) and all(found and re.search(plant.does, found[1])
                                     for found in wanted.values()),
        "place": None if place == "-" else bool(wanted) and all(
            found and re.search(rf"in {place} \(planted_hangs.py:\d+\)", found[1])
            for found in wanted.values()),
    }


def hang(plant):
    """Runs a plant once; returns which facts are right, and the seconds until the report."""
    if "hlaunch" in BACKEND and plant.own:
        plant = dataclasses.replace(plant, says=plant.own)
    with lab.Lab(plant.hosts) as hosts:
        runs = start(hosts, "planted_hangs.py", plant, ["--hang-timeout", 4])
        since = wait(runs, lambda: re.search(r"PLANTED (\S+)", "".join(run.out for run in runs)))
        what = FAILED if plant.raises and "hlaunch" in BACKEND else TOLD
        told = since and wait(runs, lambda: what.search(runs[0].err), PATIENCE)
        after = time.time()
        time.sleep(0.1)  # Wait for all of its lines.
        text = what.search(runs[0].err)[0] if told else ""
        said = "\n".join(map(str, runs)) if not told else ""
    judged = judge(plant, text) if what is TOLD else {
        "rank": bool(re.search(plant.raises, text)), "host": None, "collective": None, "does": None,
        "place": None}
    return {"name": plant.name, "told": text, "said": said,
            "seconds": after - float(since[1]) if told else None, **judged}


def suspend(run, seconds):
    """Stops all processes of the job for a while once it runs."""
    time.sleep(15)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in [run.pid, *run.descendants()]:
            os.kill(pid, number)
        time.sleep(seconds if number == signal.SIGSTOP else 0)
    run.process.send_signal(signal.SIGCONT)  # nsenter has stopped with its child.


def healthy(program):
    """Runs a healthy program once; returns whether it was suspected of a hang."""
    with lab.Lab(program.hosts) as hosts:
        runs = start(hosts, "healthy_programs.py", program, [])
        if program.suspended:
            suspend(runs[0], program.suspended)
        codes = [run.wait(2 * LIMIT) for run in runs]
        said = "\n".join(map(str, runs))
        alarms = [found for run in runs for found in TOLD.findall(run.err)]
    return {"name": program.name, "alarms": alarms, "codes": codes,
            "said": said if alarms or any(codes) else ""}


def mark(value):
    return {True: "yes", False: "**no**", None: "-"}[value]


def show_hang(row):
    seconds = f"{row['seconds']:.1f}" if row["seconds"] is not None else "-"
    print(f"| {row['name']} | " + " | ".join(mark(row[key]) for key in (
        "rank", "host", "collective", "does", "place")) + f" | {seconds} |", flush=True)
    if not all(row[key] in (True, None) for key in ("rank", "host", "collective", "does", "place")):
        print("\n".join("    " + line for line in (row["told"] or row["said"]).splitlines()),
              file=sys.stderr, flush=True)


def show_healthy(row):
    print(f"| {row['name']} | {len(row['alarms'])} | {row['codes']} |", flush=True)
    if row["said"]:
        print("\n".join("    " + line for line in row["said"].splitlines()), file=sys.stderr,
              flush=True)


def show_sum(hangs, programs):
    for key in ("rank", "host", "collective", "does", "place"):
        known = [row for row in hangs if row[key] is not None]
        right = sum(row[key] for row in known)
        print(f"{key}: {right} of {len(known)}")
    seconds = sorted(row["seconds"] for row in hangs if row["seconds"] is not None)
    if seconds:
        print(f"seconds: {seconds[len(seconds) // 2]:.1f} (median), {seconds[-1]:.1f} (most)")
    print(f"false alarms: {sum(bool(row['alarms']) for row in programs)} of {len(programs)}; ended "
          f"badly: {sum(any(row['codes']) for row in programs)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", "--jobs", type=int, default=8)
    parser.add_argument("--only", default="", help="of the names of plants and programs")
    parser.add_argument("--backend", default="gloo", help="of the hangs' groups")
    parser.add_argument("--kind", choices=("hangs", "healthy"), help="else both")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    global BACKEND
    BACKEND = options.backend

    def chosen(kind, cases):
        wanted = options.kind in (None, kind)
        return [case for case in cases
                if wanted and re.search(options.only, case.name)] * options.rounds
    hangs = [plant for plant in PLANTS if "hlaunch" not in BACKEND or plant.own != "-"]
    results = {"hangs": [], "healthy": []}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        print("| Hang | rank | host | collective | what it does | place | seconds |\n"
              "|---|---|---|---|---|---|---|")
        for row in pool.map(hang, chosen("hangs", hangs)):
            results["hangs"].append(row)
            show_hang(row)
        print("\n| Program that is well | false alarms | exit codes |\n|---|---|---|")
        for row in pool.map(healthy, chosen("healthy", HEALTHY)):
            results["healthy"].append(row)
            show_healthy(row)
    show_sum(results["hangs"], results["healthy"])
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
