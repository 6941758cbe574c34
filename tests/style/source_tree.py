# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What the style checks share: the files of the tree, and how a check reports.

A check is a function `problems(root) -> list of lines`. Its file is also a program that prints
those lines and how to fix them. Exit code: 0 clean, 1 problems, 77 the check cannot run here.
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77  # CTest's SKIP_RETURN_CODE


def files(root, *suffixes):
    """The tree's files as git sees them (tracked, or new and not ignored), sorted."""
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = [name for name in listed.stdout.decode().split("\0") if name]
        found = [root / name for name in names if (root / name).is_file()]
    else:  # A tree without git: a release archive, or a test's planted one.
        found = [path for path in root.rglob("*") if path.is_file()
                 and not any(part.startswith((".git", "build")) for part in
                             path.relative_to(root).parts[:-1])]
    return sorted(path for path in found if not suffixes or path.suffix in suffixes)


def compiled(build):
    """The files that were compiled in that folder, including those that were compiled together."""
    entries = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return set().union(*(sources(pathlib.Path(entry["file"])) for entry in entries))


def sources(file):
    """{file}, or the files that it joins for the compiler."""
    if file.parent.name != "Unity":
        return {file}
    return set(map(pathlib.Path, re.findall('#include "(.*)"', file.read_text("utf-8"))))


def run(problems, fix):
    """Runs the check over the tree named on the command line, or over this one."""
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    found = problems(root)
    for line in found:
        print(line)
    if found:
        print(f"{len(found)} problem{'s' if len(found) > 1 else ''}. To fix: {fix}")
    sys.exit(1 if found else 0)


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)
