#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Every source file and script begins with the two SPDX lines (after #! if it has one)."""

import source_tree

LINES = ["SPDX-License-Identifier: Apache-2.0", "SPDX-FileCopyrightText: The hlaunch authors"]


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def problems(root):
    found = []
    for path in source_tree.files(root):
        if path.suffix not in (".h", ".cc", ".py", ".sh") and not is_script(path):
            continue
        with open(path, encoding="utf-8") as file:
            head = [file.readline() for _ in range(3)]
        if head[0].startswith("#!"):
            head.pop(0)
        comments = [line.lstrip("/#").strip() for line in head[:2]]
        if comments != LINES:
            found.append(f"{path.relative_to(root)}: lacks the SPDX header")
    return found


if __name__ == "__main__":
    source_tree.run(problems, "put these two comment lines first: " + " / ".join(LINES))
