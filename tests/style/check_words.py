#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Words that have left the house do not come back: one word per idea, and it is the field's."""

import re

import source_tree

LEFT = {
    r"witness": "voter",
    "obituar": "death report",
    r"join_?desk": "registrar",
    r"job_?course": "job lifecycle",
    r"rank_?picture|picture_?(?:exchange|text)": "snapshot",
}
# What users read: the manual, the change log, and the sentences that programs say.
LEFT_FOR_USERS = {
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bsurroundings\b": "environment",
    r"(?<![.\w])patience\b": "time-out",
    r"\bgood moments?\b": "checkpoint",
    r"\bstrangers?\b": "unauthenticated peer",
    r"\bdesks?\b": "registrar",
    r"\bghosts?\b": "fenced member",
    r"\bseats?\b": "member slot",
    r"\bmeeting place\b": "rendezvous address",
    r"\bnobody here says\b": "unknown",
}
FOR_USERS = re.compile("|".join(LEFT_FOR_USERS), re.IGNORECASE)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
PRODUCT = ("proto", "rendezvous", "comm", "agent", "launcher")
PAGES = ("README.md", "CHANGELOG.md", "SECURITY.md")
# What other releases call an rpc stays.
ON_THE_WIRE = re.compile(r"(?:PassWitnessMessage|GetWitnessRecord)(?:Request|Response)?")
HERE = ("tests/style/check_words.py", "tests/style/style_test.py")


def read_by_users(name, line):
    """What users read of a line of that file."""
    if name in PAGES or name.startswith("launcher/manual/"):
        return line
    if not name.startswith(tuple(f"{floor}/" for floor in PRODUCT)) or not name.endswith((".cc", ".h")):
        return ""
    if line.lstrip().startswith("//"):
        return ""
    return "\n".join(text for text in STRING.findall(line) if " " in text)


def problems(root):
    found = []
    for path in source_tree.files(root):
        name = path.relative_to(root).as_posix()
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if name in HERE:
            continue
        for number, line in enumerate([name, *text.splitlines()]):
            read = read_by_users(name, line) if FOR_USERS.search(line) else ""
            for word, standard in LEFT_FOR_USERS.items():
                if read and (match := re.search(word, read, re.IGNORECASE)):
                    found.append(f"{name}:{number}: users read \"{match[0]}\", which is called "
                                 f"{standard}")
            for word, standard in LEFT.items():
                if match := re.search(word, ON_THE_WIRE.sub("", line), re.IGNORECASE):
                    found.append(f"{name}:{number}: \"{match[0]}\" is called {standard} here")
    return found


if __name__ == "__main__":
    source_tree.run(problems, "use the word that is named")
