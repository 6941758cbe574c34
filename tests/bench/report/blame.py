#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Compares the final reports of hlaunch and torchrun on planted failures.

    tests/bench/report/blame.py [--jobs 4] [--only REGEX] [--in-torch] [--minutes 15]
                                [--without-torchrun]
                                [--backend gloo|hlaunch|cpu:hlaunch|cpu:hlaunch,cuda:gloo]
                                [--json FILE] [-v]

Hosts are namespaces (tests/end_to_end/lab.py). Rank and host of a report are right if its first
line names them; for torchrun, if its "Root Cause" does. The cause is right if that line has the
pattern of plants.py; for torchrun, if any line does. Seconds run from the failure, whose time the
worker or the bench records, to the report's first line. This bench asserts nothing.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import sys
import threading
import time

import plants
import lab
import planted_failures_test as planted

BACKEND = "gloo"  # Of --backend.
MOST_LINES = 10
LIMIT = 180  # Seconds for one run; a slower one counts as without a report.
SETTLE = 1.5  # Seconds to wait for the rest of a report.
HEAD = {"hlaunch": r"^hlaunch(?:\[[^]]*\])?: (?:error: )?job (?:failed|stopped): .*$",
        "torchrun": r"^Root Cause \(first observed failure\):$"}
OWN = r"^hlaunch(?:\[[^]]*\])?: (?:error: )?"


@dataclasses.dataclass
class Result:
    """The result of one run: what is right, and the report."""
    rank: bool = None  # None if there is no rank to be named.
    host: bool = None
    cause: bool = False
    advice: str = ""  # "right", "wrong", "missing", "none".
    seconds: float = None
    lines: int = 0
    report: str = ""

    def misses(self, plant):
        wrong = [name for name in ("rank", "host", "cause") if getattr(self, name) is False]
        if self.advice in ("wrong", "missing"):
            wrong.append(f"advice {self.advice}")
        if self.seconds is not None and self.seconds > plant.within:
            wrong.append(f"{self.seconds:.1f} s")
        if self.lines > MOST_LINES:
            wrong.append(f"{self.lines} lines")
        return wrong


def meet(plant, port):
    if plant.hosts == 1:
        return {"hlaunch": [], "torchrun": ["--standalone"]}
    return {"hlaunch": ["--nnodes", plant.hosts, "--rdzv-endpoint", f"node0:{port}"],
            "torchrun": ["--nnodes", plant.hosts, "--rdzv-backend", "c10d", "--rdzv-id", "plant",
                         "--rdzv-endpoint", f"node0:{port}"]}


def command(launcher, plant, node):
    only = plant.only.get(node.index, {})
    words, options = only.get("words", plant.words), only.get("options", plant.options)
    bare = "--no-python" in options
    words = list(words)
    if launcher == "hlaunch":
        return [lab.HLAUNCH, *meet(plant, 29400)[launcher], "--nproc-per-node", plant.nproc,
                *options, *words]
    if not bare and plant.python not in (None, planted.TORCH2):
        words = [plant.python, *words]
        bare = True
    return [planted.TORCH2, "-m", "torch.distributed.run", *meet(plant, 29400)[launcher],
            "--nproc-per-node", plant.nproc, *(["--no-python"] if bare else []), *words]


def begin(launcher, plant, nodes, folder):
    runs = []
    for node in nodes:
        only = plant.only.get(node.index, {})
        env = {"PLANT_FOLDER": folder, "PLANT_ADDRESS": node.ip, "OMP_NUM_THREADS": "1"}
        if plant.python:
            env["PYTHON_EXEC"] = plant.python
        else:
            env["PYTHON_EXEC"] = planted.jobs.PYTHON
        if plant.python == planted.TORCH2 and BACKEND != "gloo":
            env |= {"PLANT_BACKEND": BACKEND, "PYTHONPATH": lab.BIN.parent / "python"}
        env = {**env, **plant.env, **only.get("env", {})}
        runs.append(node.start(*command(launcher, plant, node), env={
            name: str(value).replace("{here}", str(node.folder)) for name, value in env.items()
            if value is not None}))
    return runs


def struck(folder, launched, by_bench):
    """(time of the failure, host): of the strike, else the worker's mark, else the launch."""
    if by_bench:
        return by_bench, None
    try:
        when, host, _ = (folder / "struck").read_text(encoding="ascii").split()
        return float(when), host
    except (FileNotFoundError, ValueError):
        return launched, None


def watch(runs, pattern, until):
    """(the run whose report comes first, when it was seen); None if all end without a report."""
    while time.monotonic() < until:
        over = runs[0].process.poll() is not None
        for run in runs:
            if re.search(pattern, run.err, re.MULTILINE):
                return run, time.time()
        if over:
            return None, None
        time.sleep(0.02)
    return None, None


def report_of(launcher, run):
    if launcher == "hlaunch":
        report = planted.report_of(run)
        last = [i for i, line in enumerate(report) if re.match(r"  exit code \d+$", line)]
        return report[:last[0] + 1] if last else report[:1]
    text = run.err[re.search(HEAD[launcher], run.err, re.MULTILINE).start():]
    return [line for line in text.splitlines() if not line.startswith("=")]


def judge(launcher, plant, report, seconds, host):
    host = host or (r"node\d+" if plant.host is None else f"node{plant.host}")
    text, result = "\n".join(report), Result(seconds=seconds, lines=len(report))
    result.report = text
    first = report[0] if launcher == "hlaunch" and report else text
    named = rf"rank {plant.rank} \({host}" if launcher == "hlaunch" else rf"rank\s*: {plant.rank} "
    if plant.rank is not None:
        result.rank = bool(re.search(named, first))
    result.host = plant.hosts == 1 or plant.console == (plant.host or 0) != 0 or bool(re.search(rf"\b{host}\b", first))
    evidence = [line for line in report[1:] if line.startswith("    ")]
    result.cause = bool(re.search(plant.cause, "\n".join([first, *evidence]), re.MULTILINE))
    advice = [line for line in report if line.strip().startswith("advice: ")]
    right = bool(plant.advice and re.search(plant.advice, "".join(advice)))
    result.advice = "right" if right else \
        "missing" if plant.advice and not advice else "wrong" if advice else "none"
    return result


def refused(plant, run, seconds):
    """The result where no job began: hlaunch's last message is all there is."""
    said = planted.jobs.own_lines(run)
    if (plant.hosts > 1 and not plant.console) or run.process.poll() in (None, 0) or not said:
        return Result(report="no report: " + run.err[-800:])
    lines = [line for line in run.err.splitlines() if line][-MOST_LINES:]
    report = [re.sub(OWN, "", said[-1]), *("    " + line for line in said[:-1])]
    result = judge("hlaunch", plant, report, seconds, None)
    result.lines, result.report = len(lines), "\n".join(lines)
    return result


def run(launcher, plant):
    """Runs one launcher on one plant."""
    with lab.Lab(plant.hosts) as hosts:
        try:
            return run_on(hosts, launcher, plant)
        finally:
            for one in hosts.runs:
                one.process.kill()  # nsenter stays stopped if its child was stopped.


def run_on(hosts, launcher, plant):
    nodes, folder = hosts.nodes, hosts.folder / "plant"
    folder.mkdir()
    if plant.hosts > 1 and "data.bin" in plant.cause:
        for node in nodes[:-1]:
            (node.folder / "data.bin").write_bytes(b"data")
    if plant.prepare:
        plant.prepare(nodes)
    launched, until, by_bench = time.time(), time.monotonic() + LIMIT, None
    runs = begin(launcher, plant, nodes, folder)
    if plant.strike:
        try:
            runs[plant.host].wait_for("stands", 9)
        except AssertionError:
            return Result(report=f"never began: {runs[0].err[-800:]}")
        by_bench, until = time.time(), time.monotonic() + LIMIT
        plant.strike(nodes, runs)
    # The report of a struck node itself does not count: it may be impossible to read.
    seen = [run for run, node in zip(runs, nodes) if not plant.strike or node.index != plant.host]
    told = runs[plant.console]
    found, when = watch([told] if launcher == "hlaunch" else seen, HEAD[launcher], until)
    if not found:
        return refused(plant, told, time.time() - launched)
    end = time.monotonic() + SETTLE
    while found.process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    began, host = struck(folder, launched, by_bench)
    return judge(launcher, plant, report_of(launcher, found), when - began, host)


class Table:
    """Runs all plants, several at a time, and prints the results."""

    def __init__(self, chosen, launchers, verbose, found=None):
        self.chosen, self.launchers, self.verbose, self.found = chosen, launchers, verbose, found
        self.results = {launcher: {} for launcher in launchers}
        self.lock, self.until = threading.Lock(), 0

    def one(self, launcher, number):
        plant = self.chosen[number]
        if launcher != "hlaunch" and time.monotonic() > self.until:
            return
        try:
            result = run(launcher, plant)
        except Exception as error:  # The bench itself has failed; it goes on.
            result = Result(report=f"the bench: {error!r}")
        with self.lock:
            self.results[launcher][number] = result
            if launcher == "hlaunch" and (self.verbose or self.misses(number)):
                print(f"-- {plant.group}: {plant.name} (rank {plant.rank}, node{plant.host}): "
                      f"{', '.join(self.misses(number)) or 'right'}\n{result.report}", flush=True)
            if self.found:
                print(json.dumps({"group": plant.group, "name": plant.name, "named_rank": plant.rank,
                                  "launcher": launcher, **dataclasses.asdict(result)}),
                      file=self.found, flush=True)

    def misses(self, number, launcher="hlaunch"):
        result = self.results[launcher][number]
        return result.misses(self.chosen[number]) if result.seconds is not None else ["no report"]

    def run(self, jobs, until):
        """Runs all of hlaunch's plants, and those of torchrun's that begin before `until`."""
        self.until = until
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            tasks = [pool.submit(self.one, launcher, number) for launcher in self.launchers
                     for number, plant in enumerate(self.chosen)
                     if launcher == "hlaunch" or plant.torchrun]
            for task in tasks:
                task.result()

    def of(self, launcher, name, group=None):
        """For example "103 of 109": how often it was named, of the times that it should be."""
        right = [bool(value) for value in self.asked(launcher, name, group)]
        return f"{sum(right)} of {len(right)}" if right else "–"

    def asked(self, launcher, name, group):
        for number, result in self.results[launcher].items():
            plant = self.chosen[number]
            if group not in (None, plant.group) or (name == "rank" and plant.rank is None):
                continue
            yield getattr(result, name)

    def summary(self):
        groups = list(dict.fromkeys(plant.group for plant in self.chosen))
        print("\n| what fails | plants | rank | host | cause | advice wrong, missing | seconds, median, most | lines, most |\n"
              "|---|---|---|---|---|---|---|---|")
        for launcher in self.launchers:
            for group in [*groups, None]:
                results = [result for number, result in self.results[launcher].items()
                           if group in (None, self.chosen[number].group)]
                if not results:
                    continue
                seconds = sorted(result.seconds for result in results if result.seconds is not None)
                advice = collections.Counter(result.advice for result in results)
                print(f"| {launcher}: {group or 'all'} | {len(results)} | "
                      f"{self.of(launcher, 'rank', group)} | {self.of(launcher, 'host', group)} | "
                      f"{self.of(launcher, 'cause', group)} | {advice['wrong']}, {advice['missing']} | "
                      + (f"{seconds[len(seconds) // 2]:.2f}, {seconds[-1]:.1f} | " if seconds else "– | ")
                      + f"{max(result.lines for result in results)} |")
        missed = [number for number in sorted(self.results["hlaunch"]) if self.misses(number)]
        print(f"\n{len(missed)} of {len(self.chosen)} reports of hlaunch miss something:")
        for number in missed:
            plant = self.chosen[number]
            print(f"  {plant.group}: {plant.name}: {', '.join(self.misses(number))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--only", default="", help="a pattern in group: name")
    parser.add_argument("--in-torch", action="store_true", help="only plants in the newer torch")
    parser.add_argument("--minutes", type=float, default=15,
                        help="no run of torchrun begins after these")
    parser.add_argument("--backend", default="gloo", help="of the groups of the newer torch")
    parser.add_argument("--without-torchrun", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="gets a line for each report as it is found")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    global BACKEND
    BACKEND = options.backend
    lab.PATIENCE = 10
    chosen = [plant for plant in plants.PLANTS
              if re.search(options.only, f"{plant.group}: {plant.name}")
              and (plant.python == planted.TORCH2 or not options.in_torch)]
    launchers = ["hlaunch"] if options.without_torchrun else ["hlaunch", "torchrun"]
    found = open(options.json, "w", encoding="utf-8") if options.json else None
    table = Table(chosen, launchers, options.verbose, found)
    began = time.monotonic()
    table.run(options.jobs, began + 60 * options.minutes)
    table.summary()
    print(f"{len(chosen)} plants in {time.monotonic() - began:.0f} s")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
