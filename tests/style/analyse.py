#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Runs the checks that clang 14 does better than GCC over all our files, without building anything.

    analyse.py thread-safety [--beyond BUILD]
                                -Wthread-safety -Werror (GCC ignores the annotations). Skips what
                                clang compiled in the folder BUILD, where it gives the same warnings
    analyse.py tidy [FILE…]     clang-tidy with .clang-tidy's list; all findings are errors

Configures the preset `clang` for its compile commands; for thread-safety, which spends most of its
time on headers, it joins the files of a room. The exit code is 77 if clang is missing.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import source_tree

ROOT = source_tree.ROOT
# The program, the build folder, and further options of its configuration.
TOOLS = {"thread-safety": ("clang++-14", ROOT / "build-analysis", ["-DHLAUNCH_UNITY=ON"]),
         "tidy": ("clang-tidy-14", ROOT / "build-clang", [])}
PATH = {"PATH": f"/usr/bin:/bin:{os.environ['PATH']}"}


def compile_commands(build, options):
    """[(file, clang command)] of our own sources, after configuring and generating code."""
    for command in (["cmake", "--preset", "clang", "-B", build, *options],
                    ["ninja", "-C", build, "proto/gen/hlaunch/v1/job.pb.cc"]):
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **PATH}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            sys.exit(f"{command[0]} failed:\n{done.stdout[-3000:]}")
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    ours = [(pathlib.Path(entry["file"]), shlex.split(entry["command"])) for entry in entries]
    # Generated files are left out, and C, which has no locks of ours.
    return [(file, command) for file, command in ours if any(
        build not in source.parents and source.suffix == ".cc"
        for source in source_tree.sources(file))]


def syntax_only(command):
    without_output = []
    words = iter(command)
    for word in words:
        if word == "-o":
            next(words)
        elif word != "-c":
            without_output.append(word)
    return [*without_output, "-fsyntax-only", "-Wthread-safety", "-Werror"]


def run_all(jobs, build):
    """Runs [(file, argv)] on all CPUs; prints the failures; returns their number."""
    def run(job):
        return job[0], subprocess.run(job[1], cwd=build, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, check=False, timeout=600)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, done in pool.map(run, jobs):
            if done.returncode != 0:
                failed += 1
                findings = re.sub(r"^\d+ warnings? generated\.\n", "", done.stdout, flags=re.M)
                print(f"-- {file.relative_to(ROOT)}\n{findings.strip()}")
    files = sum(len(source_tree.sources(file)) for file, _ in jobs)
    print(f"{files} files in {len(jobs)} calls, {failed} calls with findings")
    return failed


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what not in TOOLS:
        sys.exit(__doc__)
    tool, build, options = TOOLS[what]
    if not shutil.which(tool):
        source_tree.skip(f"{tool} is not installed")
    done, names = set(), sys.argv[2:]
    if names[:1] == ["--beyond"]:
        done, names = source_tree.compiled(ROOT / names[1]), []
    only = {pathlib.Path(name).resolve() for name in names}
    commands = [(file, command) for file, command in compile_commands(build, options)
                if not source_tree.sources(file) <= done and (not only or file in only)]
    if what == "thread-safety":
        jobs = [(file, syntax_only(command)) for file, command in commands]
    else:
        jobs = [(file, [tool, "--quiet", "--warnings-as-errors=*", "-p", str(build), str(file)])
                for file, _ in commands]
    sys.exit(1 if run_all(jobs, build) else 0)


if __name__ == "__main__":
    main()
