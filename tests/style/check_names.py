#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""No two files define a type of the same name in one namespace. In a program with both, the linker
uses the functions of one type for both, and their effect on the other's objects is undefined."""

import collections
import re

import source_tree

OPENS = re.compile(r"(?:inline )?namespace ?([\w:]*) ?\{$")
ONLY_NAMES = re.compile(r"^namespace [\w:]+ \{[^{}]*\}", re.M)  # It only declares names.
CLOSES = re.compile(r"\}  // namespace")
TYPE = re.compile(r"(?:class|struct|union|enum class|enum) (?:\[\[\w+\]\] )?(\w+)(?: final)?(?: :[^;]*)? ?\{")


def types_of(text):
    """The types of a file that other files can see, with their namespaces."""
    found, inside = [], []
    for line in ONLY_NAMES.sub("", text).splitlines():
        if opened := OPENS.match(line):
            inside.append(opened[1])
        elif CLOSES.match(line):
            del inside[-1:]
        elif (kind := TYPE.match(line)) and "" not in inside:
            found.append("::".join([*inside, kind[1]]))
    return found


def problems(root):
    files = collections.defaultdict(list)
    for path in source_tree.files(root, ".h", ".cc"):
        for name in types_of(path.read_text(encoding="utf-8")):
            files[name].append(str(path.relative_to(root)))
    return [f"{name} is defined by {' and by '.join(paths)}"
            for name, paths in sorted(files.items()) if len(paths) > 1]


if __name__ == "__main__":
    source_tree.run(problems, "rename one of the two, or put it into a nameless namespace")
