#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Every header compiles alone, so that a file may include just what it uses."""

import concurrent.futures
import os
import shutil
import subprocess

import source_tree

FLAGS = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror",
         "-DASIO_STANDALONE", "-DASIO_NO_DEPRECATED", "-x", "c++", "-"]


def compile_alone(compiler, root, header):
    generated = [f"-isystem{path}" for path in root.glob("build*/proto/gen")]
    done = subprocess.run(
        [compiler, f"-I{root}", *generated, *FLAGS], input=f'#include "{header}"\n', text=True,
        capture_output=True, check=False, timeout=120)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    return f"{header}: does not compile alone: {(errors or [done.stderr.strip()])[0]}"


def problems(root):
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if not compiler:
        source_tree.skip("no C++ compiler in PATH")
    headers = [path.relative_to(root).as_posix() for path in source_tree.files(root, ".h")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda header: compile_alone(compiler, root, header), headers)
    return [line for line in results if line]


if __name__ == "__main__":
    source_tree.run(problems, "include in each header what it uses, or declare it forward")
