#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Includes go down only, rooms and wings use only those that they list, and gRPC stays in its rooms.

1. A file includes headers of its own floor and of the floors below, never above.
2. A room is a folder that a CMakeLists.txt names with hlaunch_room. Its files include headers of
   their own room and of the rooms that it lists behind USES, and it lists no unused room.
3. There is no cycle of wings, of rooms or of units (x.h and x.cc are one unit). A wing is a folder
   of a floor, with all rooms in it.
4. Only files that a CMakeLists.txt names between if(HLAUNCH_GRPC) and endif(), or whose folder it
   adds there, reach gRPC and Protobuf headers, directly or through our own headers.
5. A wing of several rooms has an hlaunch_wing in its CMakeLists.txt, which lists the wings of its
   floor that its rooms use, and no other.
"""

import collections
import re

import source_tree

FLOORS = ["proto", "rendezvous", "comm", "agent", "launcher"]  # From the lowest up.
# Each is the main file of one program, above all rooms.
PROGRAMS = {"launcher/main", "launcher/agent_main", "launcher/hlaunchd_main", "launcher/man_main",
            "comm/hlcomm"}
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)
ROOM = re.compile(r"^hlaunch_room\(\s*([\w/]+)(.*?)\)", re.MULTILINE | re.DOTALL)
WING = re.compile(r"^hlaunch_wing\(\s*([\w/]+)(.*?)\)", re.MULTILINE | re.DOTALL)
GRPC_HEADER = re.compile(r"^(grpc|grpcpp|grpc\+\+|google/protobuf|hlaunch/v1)/")


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace"))


def unit(name):
    return re.sub(r"[.](cc|h)$", "", name)


def folder(name):
    return name.rsplit("/", 1)[0]


def cmake_lists(root):
    return [path for path in source_tree.files(root, ".txt") if path.name == "CMakeLists.txt"]


def wing(room):
    """The wing of a room, which is the room itself where that is a floor's own folder."""
    return "/".join(room.split("/")[:2])


def floor_problems(root, sources):
    found = []
    for name in sources:
        floor = name.split("/")[0]
        above = FLOORS[FLOORS.index(floor) + 1:]
        for header in includes(root / name):
            if header.split("/")[0] in above:
                found.append(f"{name}: includes \"{header}\", a floor above {floor}/")
    return found


def listed_in(root, pattern):
    """{folder: what it lists behind USES}, of all calls in CMakeLists.txt that `pattern` finds."""
    found = {}
    for lists in cmake_lists(root):
        for name, rest in pattern.findall(re.sub(r"#.*", "", lists.read_text(encoding="utf-8"))):
            listed = re.search(r"\bUSES\s+([\w/\s]*?)(?=\s*(?:[A-Z_]{4,}\b|$))", rest)
            found[name] = set(listed.group(1).split()) if listed else set()
    return found


def rooms_of(root):
    """{room: the rooms that it lists}."""
    return listed_in(root, ROOM)


def wing_arrows(rooms):
    """{wing: the other wings that its rooms use}, of `rooms` as rooms_of gives them."""
    arrows = collections.defaultdict(set)
    for room, others in rooms.items():
        arrows[wing(room)] |= {wing(other) for other in others} - {wing(room)}
    return arrows


def wing_problems(root):
    rooms, listed = rooms_of(root), listed_in(root, WING)
    arrows, found = wing_arrows(rooms), []
    sizes = collections.Counter(map(wing, rooms))
    for name in sorted(arrows):
        beside = {other for other in arrows[name] if other.split("/")[0] == name.split("/")[0]}
        if sizes[name] > 1 and name not in listed:
            found.append(f"{name}/CMakeLists.txt: {sizes[name]} rooms, and no hlaunch_wing({name} ...)")
        elif name in listed:
            found += [f"{name}/CMakeLists.txt: its rooms use {other}, and hlaunch_wing does not list "
                      "that wing" for other in sorted(beside - listed[name])]
            found += [f"{name}/CMakeLists.txt: hlaunch_wing lists {other}, and no room uses that wing"
                      for other in sorted(listed[name] - beside)]
    circles = filter(None, [] if circle_in(rooms) else [circle_in(arrows)])  # Told as rooms, once.
    return found + [f"{circle[0]}: a circle of wings: {' -> '.join(circle)}" for circle in circles]


def room_problems(root, sources):
    rooms, known, used = rooms_of(root), set(sources), collections.defaultdict(set)
    found = []
    for name in sources:
        room = folder(name)
        if unit(name) in PROGRAMS:
            continue
        if room not in rooms:
            found.append(f"{name}: no hlaunch_room({room} ...) in a CMakeLists.txt")
            continue
        for header in includes(root / name):
            if header not in known or folder(header) == room:
                continue
            used[room].add(folder(header))
            if folder(header) not in rooms[room]:
                found.append(f"{name}: includes \"{header}\", and {room} does not use that room")
    return found + [f"{room}/CMakeLists.txt: USES {other}, and no file includes anything of it"
                    for room in sorted(rooms) for other in sorted(rooms[room] - used[room])]


def circle_in(arrows):
    """One cycle of the graph {node: nodes} as a list that ends with its first node; empty if
    none."""
    done, route = set(), []

    def walk(node):
        if node in route:
            return route[route.index(node):] + [node]
        if node in done:
            return []
        route.append(node)
        for other in sorted(arrows.get(node, ())):
            circle = walk(other)
            if circle:
                return circle
        route.pop()
        done.add(node)
        return []

    for node in sorted(arrows):
        circle = walk(node)
        if circle:
            return circle
    return []


def circle_problems(root, sources):
    known, units, rooms = set(sources), collections.defaultdict(set), collections.defaultdict(set)
    for name in sources:
        for header in includes(root / name):
            if header not in known:
                continue
            if unit(header) != unit(name):
                units[unit(name)].add(unit(header))
            if folder(header) != folder(name) and unit(name) not in PROGRAMS:
                rooms[folder(name)].add(folder(header))
    return [f"{circle[0]}: a circle of {kind}: {' -> '.join(circle)}"
            for kind, arrows in (("files", units), ("rooms", rooms))
            for circle in [circle_in(arrows)] if circle]


def grpc_layer(root):
    """The files, without suffix, and the folders that CMake builds only with HLAUNCH_GRPC."""
    layer = set()
    for lists in cmake_lists(root):
        place = lists.parent.relative_to(root).as_posix()
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
                layer.update(f"{place}/{unit(word)}" for word in words)
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
        folders = {name.rsplit("/", depth)[0] for depth in range(1, name.count("/") + 1)}
        if route and unit(name) not in layer and not folders & layer:
            found.append(f"{name}: reaches gRPC: {' -> '.join(route)}")
    return found


def problems(root):
    every = [path.relative_to(root).as_posix() for path in source_tree.files(root, ".h", ".cc")]
    house = [name for name in every if name.split("/")[0] in FLOORS]
    return (floor_problems(root, house) + room_problems(root, house) + circle_problems(root, house)
            + wing_problems(root) + grpc_problems(root, every))


if __name__ == "__main__":
    source_tree.run(problems, "move the code to the room or floor that needs it, or behind an "
                    "interface there; add a new arrow to the USES of the room and of its wing; "
                    "name what speaks gRPC between if(HLAUNCH_GRPC) and endif() in a CMakeLists.txt")
