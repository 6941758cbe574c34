#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""No judgement reads what is written for people: the `evidence` of a failure, what a worker `did`.

Whoever rewords such a line must not change what hlaunch does. What is to be decided by is in a field
of its own: `kind`, `exited`.
"""

import re

import source_tree

PROSE = r"(?:(?:[.]|->)(?:evidence|did)|\bevidence)"
READS = re.compile(rf"(?:StartsWith|EndsWith|StrContains|ConsumePrefix|ConsumeSuffix|FullMatch|"
                   rf"PartialMatch)\(&?[^,;()]*{PROSE}(?:\(\))?,|{PROSE}[.](?:r?find|substr|compare)\(|"
                   rf"{PROSE} [=!]= ")


def reads(root):
    """The lines of the product that judge by such a line, as (file, number)."""
    for path in source_tree.files(root, ".h", ".cc"):
        name = path.relative_to(root).as_posix()
        if name.startswith("tests/"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if READS.search(line):
                yield name, number


def problems(root):
    return [f"{name}:{number}: judges by a line that is written for people"
            for name, number in reads(root)]


if __name__ == "__main__":
    source_tree.run(problems, "decide by a field that says it, such as `kind` (FailureKind)")
