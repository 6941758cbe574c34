#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Counts the house: how large it is, and how much of what makes it hard to move into is left.

    tests/style/count.py [COMMIT...]

prints a column for each commit (none: for the files as they are), so that a change can be seen.
"""

import collections
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

import check_evidence
import check_layers
import source_tree

LONG_FILE, LONG_BODY = 400, 250
STARTS = re.compile(r"std::j?thread\s*\(|= std::thread\(|std::thread\(\[|pthread_create\(")
BODY = re.compile(r"^ {0,2}(?:class|struct) [^;]*\{\n(.*?)^ {0,2}\};", re.M | re.S)


def circles(arrows):
    """How many groups of nodes reach each other (strongly connected parts of more than one)."""
    order, seen = [], set()

    def walk(node, graph, found):
        stack = [(node, iter(sorted(graph.get(node, ()))))]
        seen.add(node)
        while stack:
            here, rest = stack[-1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                found.append(stack.pop()[0])
            else:
                seen.add(following)
                stack.append((following, iter(sorted(graph.get(following, ())))))

    for node in sorted(arrows):
        if node not in seen:
            walk(node, arrows, order)
    back = collections.defaultdict(set)
    for node, others in arrows.items():
        for other in others:
            back[other].add(node)
    seen.clear()
    count = 0
    for node in reversed(order):
        if node not in seen:
            part = []
            walk(node, back, part)
            count += len(part) > 1
    return count


def figures(root):
    """{what is counted: how much there is} of the product below `root`."""
    paths = [path for path in source_tree.files(root, ".h", ".cc", ".proto")
             if path.relative_to(root).parts[0] in check_layers.FLOORS]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    code = {name: text for name, text in texts.items() if not name.endswith(".proto")}
    lines = {name: text.count("\n") for name, text in texts.items()}
    units, arrows = collections.defaultdict(set), collections.defaultdict(set)
    for name in code:
        units[check_layers.unit(name)].update(
            check_layers.unit(header) for header in check_layers.includes(root / name)
            if header in code and check_layers.unit(header) != check_layers.unit(name))
    rooms = check_layers.rooms_of(root)
    wings = check_layers.wing_arrows(rooms)
    for room, uses in rooms.items():
        arrows[room.split("/")[0]] |= {(room, other) for other in uses}
    bodies = [body for name, text in code.items() if name.endswith(".cc")
              for body in BODY.findall(text) if body.count("\n") > LONG_BODY]
    includes = sum(len(check_layers.INCLUDE.findall(text)) for text in code.values())
    every = "\n".join(code.values())
    return {
        "files": len(texts),
        "lines": sum(lines.values()),
        "units": len(units),
        "folders": len({check_layers.folder(name) for name in texts}),
        "include lines, %": round(100 * includes / sum(lines[name] for name in code), 2),
        f"files over {LONG_FILE} lines": sum(count > LONG_FILE for count in lines.values()),
        f"class bodies over {LONG_BODY} lines, in .cc": len(bodies),
        "wings": len(wings),
        "rooms": len(rooms),
        **{f"arrows between wings of {floor}": sum(
            other.split("/")[0] == floor for name, others in wings.items()
            if name.split("/")[0] == floor for other in others) for floor in check_layers.FLOORS},
        **{f"arrows between rooms of {floor}": len(arrows[floor]) for floor in check_layers.FLOORS},
        "circles of units": circles(units),
        "circles of wings": circles(wings),
        "circles of rooms": circles({room: uses for room, uses in rooms.items()}),
        ".detach()": every.count(".detach()"),
        "files that start threads": sum(bool(STARTS.search(text)) for text in code.values()),
        "judgements that read prose": len(list(check_evidence.reads(root))),
    }


def of_commit(commit):
    archive = subprocess.run(["git", "-C", source_tree.ROOT, "archive", commit],
                             capture_output=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        tarfile.open(fileobj=io.BytesIO(archive)).extractall(folder)
        return figures(pathlib.Path(folder))


def main():
    commits = sys.argv[1:]
    for commit in commits:
        if subprocess.run(["git", "-C", source_tree.ROOT, "rev-parse", "--quiet", "--verify",
                           f"{commit}^{{commit}}"], capture_output=True, check=False).returncode:
            sys.exit(f"'{commit}' is no commit here; without one, the files are counted as they are")
    columns = [of_commit(commit) for commit in commits] or [figures(source_tree.ROOT)]
    print(" " * 40, *(f"{commit[:10]:>10}" for commit in commits))
    for what in columns[0]:
        print(f"{what:40}", *(f"{column[what]:>10}" for column in columns))


if __name__ == "__main__":
    main()
