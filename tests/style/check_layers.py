#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Arrows point down only, and gRPC stays in its layer.

1. A file includes headers of its own floor and the floors below, never above.
2. gRPC and Protobuf headers are reached, directly or through our own headers, only by files
   that a CMakeLists.txt names between if(HLAUNCH_GRPC) and endif().
"""

import re

import source_tree

FLOORS = ["proto", "rendezvous", "comm", "agent", "launcher"]  # From the ground up.
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
GRPC_HEADER = re.compile(r"^(grpc|grpcpp|grpc\+\+|google/protobuf|hlaunch/v1)/")


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))


def floor_problems(root, sources):
    found = []
    for name in sources:
        floor = name.split("/")[0]
        if floor not in FLOORS:
            continue
        above = FLOORS[FLOORS.index(floor) + 1:]
        for header in includes(root / name):
            if header.split("/")[0] in above:
                found.append(f"{name}: includes \"{header}\", a floor above {floor}/")
    return found


def grpc_layer(root):
    """The files, without suffix, that CMake builds only with HLAUNCH_GRPC."""
    layer = set()
    for lists in source_tree.files(root, ".txt"):
        if lists.name != "CMakeLists.txt":
            continue
        folder = lists.parent.relative_to(root).as_posix()
        blocks = []
        for line in lists.read_text(encoding="utf-8").splitlines():
            line = line.split("#")[0].strip()
            if re.match(r"if\s*\(", line):
                blocks.append(bool(re.match(r"if\s*\(\s*HLAUNCH_GRPC\s*\)", line)))
            elif re.match(r"endif\s*\(", line) and blocks:
                blocks.pop()
            elif re.match(r"else", line) and blocks:
                blocks[-1] = False
            elif any(blocks):
                words = re.findall(r"[\w./-]+", line)
                layer.update(f"{folder}/{re.sub(r'[.](cc|h)$', '', word)}" for word in words)
    return layer


def grpc_problems(root, sources):
    layer = grpc_layer(root)
    known = set(sources)
    reached = {}

    def route_to_grpc(name):
        """The chain of includes from `name` to a gRPC header, or None."""
        if name not in reached:
            reached[name] = None  # Include cycles end here.
            for header in includes(root / name):
                if GRPC_HEADER.match(header):
                    reached[name] = [header]
                    break
                deeper = route_to_grpc(header) if header in known else None
                if deeper:
                    reached[name] = [header] + deeper
                    break
        return reached[name]

    found = []
    for name in sources:
        route = route_to_grpc(name)
        if route and re.sub(r"[.](cc|h)$", "", name) not in layer:
            found.append(f"{name}: reaches gRPC: {' -> '.join(route)}")
    return found


def problems(root):
    sources = [path.relative_to(root).as_posix() for path in source_tree.files(root, ".h", ".cc")]
    return floor_problems(root, sources) + grpc_problems(root, sources)


if __name__ == "__main__":
    source_tree.run(problems, "move the code down to the floor that needs it, or behind an "
                    "interface there; name a file of the gRPC layer between if(HLAUNCH_GRPC) and "
                    "endif() in its CMakeLists.txt")
