#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs the same command lines with hlaunch and with torchrun: both write the same files with the
same lines, and show the same workers' lines on the console. DIFFERENCES lists the exceptions and
their reasons."""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import lab
import torch_test

# Prints two lines on each stream. If it is told to, rank 1 fails once after all have printed
# theirs.
WORKER = r"""
import os, pathlib, sys, time
rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
for word in ("apple", "banana"):
    # In one piece each: torchrun's workers share the console, and print writes the newline apart.
    os.write(1, f"out {rank} {attempt} {word}\n".encode())
    os.write(2, f"err {rank} {attempt} {word}\n".encode())
here = pathlib.Path(os.environ["MEET"])
(here / f"{attempt}_{rank}").touch()
while len(list(here.glob(f"{attempt}_*"))) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.01)
if os.environ.get("FAIL") and rank == "1" and attempt == "0":
    pathlib.Path(os.environ["TORCHELASTIC_ERROR_FILE"]).write_text(
        '{"message": {"message": "ValueError: planted", "extraInfo": {"timestamp": "1"}}}')
    sys.exit(3)
"""
RELEASE = "import importlib.metadata as installed; print(installed.version('torch'))"
PREFIX = "[${role_name}${local_rank}]:"  # torchrun's own prefix.


@dataclasses.dataclass
class Case:
    name: str
    options: list
    env: dict = dataclasses.field(default_factory=dict)
    log_dir: str = ""  # The value of --log-dir; LOGS stands for a directory of the test.


CASES = [
    Case("nothing", []),
    Case("a directory", [], log_dir="LOGS/new/er"),
    Case("stdout", ["-r", "1"], log_dir="LOGS"),
    Case("stderr", ["--redirects=2"], log_dir="LOGS"),
    Case("both", ["-r", "3"], log_dir="LOGS"),
    Case("both, no directory", ["-r", "3"]),
    Case("per rank", ["-r", "0:1,1:2"], log_dir="LOGS"),
    Case("tee", ["-t", "3"], log_dir="LOGS"),
    Case("tee and redirects", ["-r", "3", "-t", "0:1"], log_dir="LOGS"),
    Case("shown", ["-t", "3", "--local-ranks-filter", "1"], log_dir="LOGS"),
    Case("shown, without files", ["--local-ranks-filter", "0"], log_dir="LOGS"),
    Case("no files", ["-r", "3"], log_dir="/dev/null"),
    Case("a restart", ["-t", "3", "--max-restarts", "1"], {"FAIL": "1"}, "LOGS"),
    Case("a role", ["-t", "3", "--role", "trainer"], log_dir="LOGS"),
    Case("filters", ["-t", "3", "--duplicate-stdout-filters", "apple",
                     "--duplicate-stderr-filters", "banana,err 0"], log_dir="LOGS"),
    Case("filters, not tee", ["-r", "3", "--duplicate-stdout-filters", "apple"], log_dir="LOGS"),
    Case("filters, shown", ["-t", "1", "--local-ranks-filter", "0",
                            "--duplicate-stdout-filters", "banana"], log_dir="LOGS"),
]
# A file of filtered lines has the prefix, which starts with this host's name.
OF_2_14 = [Case("a template", ["-t", "3", "--log-line-prefix-template", "${hostname}:${rank}: ",
                               "--duplicate-stdout-filters", "apple"], log_dir="LOGS")]

BOTH = {"[default0]:out 0 0", "[default1]:out 1 0"}

# {case: {path or stream: (torchrun's, hlaunch's)}}; None if the path is absent.
DIFFERENCES = {
    # hlaunch leaves no empty directories unless the user has asked for one.
    "nothing": {f"TMP/JOB/{path}": (set(), None)
                for path in ("", "attempt_0/", "attempt_0/0/", "attempt_0/1/")},
    # A filter selects lines, wherever else they go. torchrun's file of filtered lines has only
    # lines that are both shown and in a file, and is empty, without a message, if there are none.
    "filters, not tee": {"LOGS/JOB/attempt_0/filtered_stdout.log":
                         (set(), {f"{line} apple" for line in BOTH})},
    "filters, shown": {"LOGS/JOB/attempt_0/filtered_stdout.log":
                       ({"[default0]:out 0 0 banana"}, {f"{line} banana" for line in BOTH})},
}


def normal(path):
    """The path without its random parts."""
    return re.sub(r"/(torchelastic_[^/]*/)?[^/]*_[A-Za-z0-9_]{6,8}/(?=attempt_|events|$)", "/JOB/", path)


def lines(text):
    return set(text.splitlines())


def run(launcher, case, folder):
    """Runs one job; returns {path or stream: lines}."""
    for name in ("tmp", "logs", "meet"):
        (folder / name).mkdir(parents=True)
    (folder / "worker.py").write_text(WORKER, encoding="utf-8")
    words = [*launcher, "--nproc-per-node", "2", *case.options]
    if case.log_dir:
        words += ["--log-dir", case.log_dir.replace("LOGS", str(folder / "logs"))]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PET_")}
    env |= {"TMPDIR": str(folder / "tmp"), "MEET": str(folder / "meet"),
            "PYTHON_EXEC": "/usr/bin/python3", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": PREFIX,
            **case.env}
    done = subprocess.run([*words, str(folder / "worker.py")], env=env, timeout=100 * lab.PATIENCE, check=False,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}: {done.stderr}")
    found = {}
    for stream, text in (("stdout", done.stdout), ("stderr", done.stderr)):
        # hlaunch also prefixes lines that are only shown.
        found[stream] = set(re.findall(r"(?:out|err) \d \d \w+$", text, re.MULTILINE))
    for name in ("tmp", "logs"):
        for path in (folder / name).rglob("*"):
            below = f"{name.upper()}/{path.relative_to(folder / name)}"
            found[normal(below + "/" * path.is_dir())] = (
                set() if path.is_dir() else lines(path.read_text(encoding="utf-8")))
    return found


class Layout(unittest.TestCase):
    def test_every_file_is_torchruns(self):
        python = torch_test.Torch2.python()
        if not python:
            self.skipTest("no torch 2")
        torchrun = [python, "-m", "torch.distributed.run"]
        release = subprocess.run([python, "-c", RELEASE], check=True, capture_output=True, text=True)
        cases = CASES + OF_2_14 if release.stdout >= "2.14" else CASES
        with tempfile.TemporaryDirectory() as scratch, \
                concurrent.futures.ThreadPoolExecutor(4) as pool:
            jobs = {(case.name, who): pool.submit(run, launcher, case,
                                                  pathlib.Path(scratch, str(number), who))
                    for number, case in enumerate(cases)
                    for who, launcher in (("torchrun", torchrun), ("hlaunch", [lab.HLAUNCH]))}
            for case in cases:
                with self.subTest(case.name):
                    theirs = jobs[case.name, "torchrun"].result()
                    ours = jobs[case.name, "hlaunch"].result()
                    # hlaunch also writes the event log if a directory was named.
                    named = [case.log_dir + "/JOB/events.jsonl"] if "LOGS" in case.log_dir else []
                    events = [path for path in ours if path.endswith("events.jsonl")]
                    self.assertEqual(events, named)
                    ours = {path: text for path, text in ours.items() if path not in events}
                    different = {path: (theirs.get(path), ours.get(path))
                                 for path in theirs.keys() | ours.keys()
                                 if theirs.get(path) != ours.get(path)}
                    self.assertEqual(different, DIFFERENCES.get(case.name, {}))


if __name__ == "__main__":
    lab.main()
