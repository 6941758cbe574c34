#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Every header compiles alone, so that a file may include only what it uses. That takes minutes, so
CTest runs this with HLAUNCH_AT_LENGTH alone (tests/run --full); style.includes reads the text each
time."""

import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess

import source_tree

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
         "-x", "c++", "-"]
ASIO = {"-DASIO_STANDALONE", "-DASIO_NO_DEPRECATED"}


def build_flags(root):
    """The folders of generated headers, and the macros that CMake defines for any file of the
    tree."""
    macros = set(ASIO)
    commands = root / "build/compile_commands.json"
    if commands.exists():
        for entry in json.loads(commands.read_text(encoding="utf-8")):
            macros.update(word for word in shlex.split(entry["command"]) if word[:2] == "-D")
    return [f"-isystem{path}" for path in sorted(root.glob("build*/proto/gen"))] + sorted(macros)


def compile_alone(compiler, root, flags, header):
    done = subprocess.run(
        [compiler, f"-I{root}", *flags, *FLAGS], input=f'#include "{header}"\n', text=True,
        capture_output=True, check=False, timeout=1200)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return f"{header}: does not compile alone: {(errors or [done.stderr.strip()])[0]}"


def problems(root):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        source_tree.skip("no C++ compiler in PATH")
    headers = [path.relative_to(root).as_posix() for path in source_tree.files(root, ".h")]
    flags = build_flags(root)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: compile_alone(compiler, root, flags, header), headers)
    return [line for line in results if line]


if __name__ == "__main__":
    if not os.environ.get("HLAUNCH_AT_LENGTH"):
        source_tree.skip("takes minutes (tests/run --full)")
    source_tree.run(problems, "include in each header what it uses, or declare it forward")
