#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Of our own headers and of those that the tests' builds precompile, a file includes those that it
uses, itself or through our own headers. Those builds compile the files of a room as one, and do not
notice a missing one, but the release build would.

Of our own headers, the names show what is used: a type, a function, a constant or a macro that one
header alone defines outside of all braces. What a file uses without a name is not seen, such as the
members of a type that only a header names."""

import collections
import functools
import re

import source_tree

FOLDERS = ("proto", "rendezvous", "comm", "agent", "launcher")
USES = {  # Patterns that show that a header is needed.
    "<algorithm>": r"std::(sort|stable_sort|find|find_if|all_of|any_of|none_of|min|max|clamp|count"
                   r"|count_if|copy|fill|remove_if|reverse|transform|equal|min_element|max_element"
                   r"|lower_bound|upper_bound)\b *[<(]",
    "<array>": r"std::array\b",
    "<atomic>": r"std::atomic",
    "<cerrno>": r"\berrno\b",
    "<chrono>": r"std::chrono\b",
    "<cstdio>": r"std::(printf|fprintf|fputs|fwrite|fflush|snprintf|fopen)\b|\bstderr\b|\bstdout\b",
    "<cstdlib>": r"std::(getenv|exit|abort|strto\w+|atoi|_Exit)\b",
    "<cstring>": r"std::(mem\w+|strlen|strcmp|strncmp|strerror|strchr)\b|\bstrsignal\b",
    "<deque>": r"std::deque\b",
    "<filesystem>": r"std::filesystem\b",
    "<fstream>": r"std::[io]?fstream\b",
    "<functional>": r"std::(function|hash|less|greater|ref)\b",
    "<limits>": r"std::numeric_limits\b",
    "<map>": r"std::(multi)?map\b",
    "<memory>": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
    "<mutex>": r"std::(mutex|lock_guard|unique_lock|call_once)\b",
    "<optional>": r"std::(optional|nullopt)\b",
    "<set>": r"std::(multi)?set\b",
    "<span>": r"std::(span|as_bytes|as_writable_bytes)\b",
    "<string>": r"std::(string|to_string)\b",
    "<thread>": r"std::(thread|this_thread)\b",
    "<variant>": r"std::(variant|visit|get_if|holds_alternative)\b",
    "<vector>": r"std::vector\b",
    "absl/container/flat_hash_map.h": r"absl::flat_hash_map\b",
    "absl/functional/any_invocable.h": r"absl::AnyInvocable\b",
    "absl/functional/function_ref.h": r"absl::FunctionRef\b",
    "absl/status/statusor.h": r"absl::StatusOr\b",
    "absl/strings/ascii.h": r"absl::(Strip\w*AsciiWhitespace|AsciiStr\w+|ascii_\w+)\b",
    "absl/strings/match.h": r"absl::(StartsWith|EndsWith|StrContains|EqualsIgnoreCase)\b",
    "absl/strings/numbers.h": r"absl::Simple(Ato|HexAto)",
    "absl/strings/str_cat.h": r"absl::(StrCat|StrAppend)\b",
    "absl/strings/str_format.h": r"absl::StrFormat\b",
    "absl/strings/str_join.h": r"absl::StrJoin\b",
    "absl/strings/str_replace.h": r"absl::StrReplaceAll\b",
    "absl/strings/str_split.h": r"absl::StrSplit\b",
    "absl/strings/strip.h": r"absl::(Strip|Consume)(Prefix|Suffix)\b",
    "absl/types/span.h": r"absl::(Make(Const)?)?Span\b",
}
NO_CODE = re.compile(r'R"(\w*)\((?s:.*?)\)\1"|"(?:\\.|[^"\\\n])*"|//.*|/\*(?s:.*?)\*/')
NAME = re.compile(r"(?<![.\w:>])(k?[A-Z]\w*)\b")
TYPE = r"(?:struct|class|enum(?: class)?|union)(?: \[\[\w+\]\])? "
DEFINED = re.compile(  # At the begin of a line, so outside of all braces.
    rf"^(?:{TYPE}(\w+)\b(?!;)|using (\w+) =|# *define (\w+)|\w[\w:<>, *]*\b(k[A-Z]\w*) *[={{[;]"
    r"|\w[\w:<>,*&\[\] ]* [*&]?([A-Z]\w*)\()", re.MULTILINE)


def declares(code, name, forward):
    """Whether the code has a declaration of the name, in any place; or one `forward`, if that may
    be."""
    return re.search(
        rf"(?:{TYPE}|using (?:[\w:]+::)?|typename(?:\.\.\.)? |template ){name}\b{'' if forward else '(?!;)'}"
        rf"|[\w>*&](?<!return)(?<!else)(?<!new)(?<!<<) [*&]?{name}\b *[({{=;\[]|enum [^;]*\b{name}\b", code)


class Sources:
    """Our own files: their code without what is no code, and what they include."""

    def __init__(self, root):
        self.root = root
        self.paths = [path for path in source_tree.files(root, ".cc", ".h")
                      if path.relative_to(root).as_posix().startswith(
                          tuple(f"{folder}/" for folder in FOLDERS))]
        owners = collections.defaultdict(set)
        for path in self.paths:
            if path.suffix == ".h":
                for match in DEFINED.finditer(self.code(path)):
                    owners[match[match.lastindex]].add(path)
        self.owner = {name: found.pop() for name, found in owners.items() if len(found) == 1}

    @functools.cache
    def code(self, path):
        return NO_CODE.sub("", path.read_text(encoding="utf-8", errors="replace"))

    @functools.cache
    def names(self, path):
        return frozenset(NAME.findall(self.code(path)))

    @functools.cache
    def included(self, path):
        text = path.read_text(encoding="utf-8", errors="replace")
        return frozenset(name.strip('"') for name in
                         re.findall(r'^ *# *include +([<"][^>"]+[>"])', text, re.MULTILINE))

    def reached(self, path):
        """(the file and our own headers that it includes, the names of all headers)."""
        names, waiting, seen = set(), [path], set()
        while waiting:
            file = waiting.pop()
            if file in seen:
                continue
            seen.add(file)
            names |= self.included(file)
            waiting += [self.root / name for name in self.included(file)
                        if (self.root / name).is_file()]
        return seen, names

    def missing(self, path, seen):
        """Our own headers that define what the file uses, and that it does not reach."""
        return sorted({
            self.owner[name].relative_to(self.root).as_posix()
            for name in self.names(path) & self.owner.keys()
            if self.owner[name] not in seen and not any(
                name in self.names(file) and declares(self.code(file), name,
                                                      file == path or path.suffix == ".h")
                for file in seen)})


def problems(root):
    sources = Sources(root)
    found = []
    for path in sources.paths:
        seen, has = sources.reached(path)
        missing = [header for header, use in USES.items()
                   if header not in has and re.search(use, sources.code(path))]
        found += [f"{path.relative_to(root).as_posix()}: uses {header} without including it"
                  for header in missing + sources.missing(path, seen)]
    return found


if __name__ == "__main__":
    source_tree.run(problems, "include the header")
