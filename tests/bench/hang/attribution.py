#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Measures what hlaunch reports about planted hangs, and whether it suspects healthy programs.

    tests/bench/hang/attribution.py [-j 3] [--kind hangs|healthy] [--only PATTERN] [--json FILE]
                                    [--backend gloo hlaunch nccl nccl2]

gloo and hlaunch: with the torch of HLAUNCH_TORCH2_PYTHON (hlaunch also as "cpu:hlaunch" or
"cpu:hlaunch,cuda:gloo"). nccl and nccl2: with a stand-in for a device and the records that torch
2.13 and 2.14, or 2.15, write for it. The ranks do not know hlaunch; they run on hosts made of
namespaces, which takes root. A report of a hang is right if it names exactly the ranks that hold up
the others, with their hosts, the collective and the user's own function. Hangs have --hang-timeout
4; healthy programs have the default unless a row says otherwise. What hlaunch's own collectives
find out at once is no hang: there the report of the failure is judged. Beside this stands whether
torchfrtrace, torch's own reader of flight records, names the same ranks, given the records of all
ranks at that moment. This bench asserts nothing.
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
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/end_to_end"))

import lab  # noqa: E402
import rows  # noqa: E402
import torch_test  # noqa: E402
import torchs_own  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LIMIT = 120  # Seconds within which a hang is planted, and within which a healthy program ends.
PATIENCE = 40  # Seconds within which a hang is reported.
TOLD = re.compile(r"(?:no rank has|a part of the job has not) gone on for \d+ s.*(?:\n  .*)*")
FAILED = re.compile(r"job failed: .*(?:\n.*)*")
NAMED = re.compile(r"^  rank (\d+) \((?:(\S+), )?local rank \d+, pid \d+\) (.*)", re.MULTILINE)
FACTS = ("rank", "host", "collective", "does", "place")
DEVICES = ("nccl", "nccl2")


def has_own(backend):
    """True of hlaunch's own collectives."""
    return "hlaunch" in backend


def plants_of(backend):
    if backend in DEVICES:
        return rows.DEVICE_PLANTS
    return [plant for plant in rows.PLANTS if not has_own(backend) or plant.own != "-"]


def healthy_of(backend):
    return {"gloo": rows.HEALTHY, "nccl": rows.DEVICE_HEALTHY,
            "nccl2": rows.DEVICE_HEALTHY}.get(backend, [])


def start(hosts, backend, kind, case, options):
    """The runs of the job, one for each of the lab's nodes."""
    nproc = getattr(case, "nproc", 4 // case.hosts)
    meet = ["--nnodes", case.hosts, "--rdzv-endpoint", "node0:29400"] if case.hosts > 1 else []
    env = {"PYTHON_EXEC": torch_test.Torch2.python(), "OMP_NUM_THREADS": 1}
    script = {"hangs": "planted_hangs.py", "healthy": "healthy_programs.py"}[kind]
    if backend in DEVICES:
        env |= {"DEVICE_RECORD": backend}
        script = {"hangs": "device_plants.py", "healthy": "healthy_devices.py"}[kind]
    elif has_own(backend):
        env |= {"PLANT_BACKEND": backend, "PYTHONPATH": lab.BIN.parent / "python"}
    where = hosts.nodes[0].folder  # The devices meet there.
    return [node.start(lab.HLAUNCH, *meet, "--nproc-per-node", nproc, *options, *case.options,
                       HERE / script, case.mode, env=env,
                       cwd=where if backend in DEVICES else None) for node in hosts.nodes]


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
            found and re.search(rf"in {place} \(\w+\.py:\d+\)", found[1])
            for found in wanted.values()),
    }


def hang(plant, backend, dumps):
    """Runs a plant once; returns which facts are right, and the seconds until the report."""
    if has_own(backend) and plant.own:
        plant = dataclasses.replace(plant, says=plant.own)
    records = {}
    with lab.Lab(plant.hosts) as hosts:
        runs = start(hosts, backend, "hangs", plant, ["--hang-timeout", 4])
        since = wait(runs, lambda: re.search(r"PLANTED (\S+)", "".join(run.out for run in runs)))
        what = FAILED if plant.raises and has_own(backend) else TOLD
        before = len(runs[0].err)  # A start on a busy machine may have been told of, too.
        told = since and wait(runs, lambda: what.search(runs[0].err[before:]), PATIENCE)
        after = time.time()
        time.sleep(0.1)  # Wait for all of its lines.
        text = what.search(runs[0].err[before:])[0] if told else ""
        said = "\n".join(map(str, runs)) if not told else ""
        if what is TOLD:
            records = torchs_own.records(hosts, backend)
    judged = judge(plant, text) if what is TOLD else {
        "rank": bool(re.search(plant.raises, text)), "host": None, "collective": None, "does": None,
        "place": None}
    folder = torchs_own.write(dumps, backend, plant.name, records) if records else None
    return {"name": plant.name, "told": text, "said": said, "culprits": plant.culprits,
            "dump": folder, "seconds": after - float(since[1]) if told else None, **judged}


def suspend(run, seconds):
    """Stops all processes of the job for a while once it runs."""
    time.sleep(15)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in [run.pid, *run.descendants()]:
            os.kill(pid, number)
        time.sleep(seconds if number == signal.SIGSTOP else 0)
    run.process.send_signal(signal.SIGCONT)  # nsenter has stopped with its child.


def healthy(program, backend):
    """Runs a healthy program once; returns whether it was suspected of a hang."""
    with lab.Lab(program.hosts) as hosts:
        runs = start(hosts, backend, "healthy", program, [])
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
    print(f"| {row['name']} | " + " | ".join(mark(row[key]) for key in FACTS) + f" | {seconds} |",
          flush=True)
    if not all(row[key] in (True, None) for key in FACTS):
        print(f"{row['name']}:\n" + "\n".join(
            "    " + line for line in (row["told"] or row["said"]).splitlines()), file=sys.stderr,
            flush=True)


def show_healthy(row):
    print(f"| {row['name']} | {len(row['alarms'])} | {row['codes']} |", flush=True)
    if row["said"]:
        print(f"{row['name']}:\n" + "\n".join("    " + line for line in row["said"].splitlines()),
              file=sys.stderr, flush=True)


def right(row):
    return all(row[key] in (True, None) for key in FACTS)


def share(hangs, key):
    known = [row for row in hangs if row[key] is not None]
    return f"{sum(row[key] for row in known)} of {len(known)}"


def show_sums(results):
    """The table of all back ends."""
    print("\n| Back end | plants | all right | rank | host | collective | what it does | place | "
          "seconds, median and most | torchfrtrace names the ranks | programs that are well | "
          "false alarms |\n" + "|---" * 12 + "|")
    everything = {"hangs": [], "healthy": []}
    for backend in [*results, "all"]:
        of = results.get(backend, everything)
        if backend != "all":
            everything = {kind: everything[kind] + of[kind] for kind in everything}
        hangs, programs = of["hangs"], of["healthy"]
        seconds = sorted(row["seconds"] for row in hangs if row["seconds"] is not None) or [0]
        print(f"| {backend} | {len(hangs)} | {sum(map(right, hangs))} | "
              + " | ".join(share(hangs, key) for key in FACTS)
              + f" | {seconds[len(seconds) // 2]:.1f}, {seconds[-1]:.1f} | "
              f"{share(hangs, 'torchs')} | {len(programs)} | "
              f"{sum(bool(row['alarms']) for row in programs)} |", flush=True)
        if bad := [row["name"] for row in programs if any(row["codes"])]:
            print(f"{backend}: ended badly: {bad}", file=sys.stderr)


def measure(backend, options, dumps):
    def chosen(kind, cases):
        wanted = options.kind in (None, kind)
        return [case for case in cases
                if wanted and re.search(options.only, case.name)] * options.rounds
    results = {"hangs": [], "healthy": []}
    plants, programs = chosen("hangs", plants_of(backend)), chosen("healthy", healthy_of(backend))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        print(f"\n| Hang, {backend} | rank | host | collective | what it does | place | seconds |\n"
              "|---|---|---|---|---|---|---|")
        for row in pool.map(lambda plant: hang(plant, backend, dumps), plants):
            results["hangs"].append(row)
            show_hang(row)
        print(f"\n| Program that is well, {backend} | false alarms | exit codes |\n|---|---|---|")
        for row in pool.map(lambda program: healthy(program, backend), programs):
            results["healthy"].append(row)
            show_healthy(row)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", "--jobs", type=int, default=3)
    parser.add_argument("--only", default="", help="of the names of plants and programs")
    parser.add_argument("--backend", nargs="+", default=["gloo", "hlaunch", "nccl", "nccl2"],
                        help="of the groups; else these four: %(default)s")
    parser.add_argument("--kind", choices=("hangs", "healthy"), help="else both")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as dumps:
        results = {backend: measure(backend, options, dumps) for backend in options.backend}
        torchs_own.judge([row for of in results.values() for row in of["hangs"]],
                         torch_test.Torch2.python())
    show_sums(results)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
