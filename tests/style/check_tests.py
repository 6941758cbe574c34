#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Every end-to-end test runs: the folder's CMakeLists.txt names each class with tests, or a class
that is derived from it."""

import ast
import re

import source_tree

FOLDER = "tests/end_to_end"


def named(text):
    """{file: names of classes} that CTest runs."""
    calls = re.findall(r"hlaunch_end_to_end\((\w+)([^)]*)\)", re.sub(r"#.*", "", text))
    return {file: classes.split() for file, classes in calls}


def classes_of(path):
    """{class: (its bases in the file, whether it has tests of its own)}"""
    nodes = {node.name: node for node in ast.parse(path.read_text(encoding="utf-8")).body
             if isinstance(node, ast.ClassDef)}
    return {name: ([base.id for base in node.bases if getattr(base, "id", "") in nodes],
                   any(getattr(each, "name", "").startswith("test_") for each in node.body))
            for name, node in nodes.items()}


def with_bases(names, classes):
    """The named classes of the file and all their bases."""
    found = [name for name in names if name in classes]
    for name in found:
        found += [base for base in classes[name][0] if base not in found]
    return found


def problems(root):
    folder = root / FOLDER
    run = named((folder / "CMakeLists.txt").read_text(encoding="utf-8"))
    found = []
    for path in sorted(folder.glob("*_test.py")):
        classes = classes_of(path)
        reached = with_bases(run.get(path.stem, []), classes)
        found += [f"{path.relative_to(root)}: no test runs {name}" for name in classes
                  if name not in reached
                  and any(classes[each][1] for each in with_bases([name], classes))]
    return found


if __name__ == "__main__":
    source_tree.run(problems, f"name the class in {FOLDER}/CMakeLists.txt")
