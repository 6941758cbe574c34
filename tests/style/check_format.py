#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""C++ is formatted as .clang-format says; no file has tabs or blanks at line ends."""

import re
import shutil
import subprocess

import source_tree

TOOL = "clang-format-14"  # One version, since versions differ.


def problems(root):
    if not shutil.which(TOOL):
        source_tree.skip(f"{TOOL} is not installed")
    sources = source_tree.files(root, ".h", ".cc")
    found = []
    if sources:
        done = subprocess.run([TOOL, "--dry-run", *sources], text=True, capture_output=True,
                              check=False, cwd=root, timeout=1200)
        crooked = {}
        for file, line in re.findall(r"^([^:\n]+):(\d+):\d+: (?:warning|error):", done.stderr, re.M):
            crooked.setdefault(file.replace(f"{root}/", ""), {})[line] = None
        found = [f"{file}: not formatted: line {', '.join(list(lines)[:8])}"
                 for file, lines in crooked.items()]
    for path in source_tree.files(root, ".h", ".cc", ".py", ".proto", ".md", ".cmake", ".txt"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if re.search(r"\s$", line) or ("\t" in line and path.suffix != ".md"):
                name = path.relative_to(root)
                found.append(f"{name}:{number}: blank at the line's end, or a tab")
    return found


if __name__ == "__main__":
    source_tree.run(problems, f"{TOOL} -i $(git ls-files '*.h' '*.cc'), and "
                    "sed -i 's/[ \\t]*$//' FILE for blanks at line ends")
