#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Of the headers that the tests' builds precompile, a file includes those that it uses, itself or
through our own headers. Those builds do not notice a missing one, but the release build would."""

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
NO_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|//.*')


def problems(root):
    @functools.lru_cache(None)
    def included(path):
        text = path.read_text(encoding="utf-8", errors="replace")
        return frozenset(name.strip('"') for name in
                         re.findall(r'^ *# *include +([<"][^>"]+[>"])', text, re.MULTILINE))

    def reached(path):
        names, waiting, seen = set(), [path], set()
        while waiting:
            file = waiting.pop()
            if file in seen:
                continue
            seen.add(file)
            names |= included(file)
            waiting += [root / name for name in included(file) if (root / name).is_file()]
        return names

    found = []
    for path in source_tree.files(root, ".cc", ".h"):
        name = path.relative_to(root).as_posix()
        if not name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            continue
        code = NO_CODE.sub("", path.read_text(encoding="utf-8", errors="replace"))
        has = reached(path)
        found += [f"{name}: uses {header} without including it" for header, use in USES.items()
                  if header not in has and re.search(use, code)]
    return found


if __name__ == "__main__":
    source_tree.run(problems, "include the header")
