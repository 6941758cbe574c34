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
# What other releases call an rpc stays.
ON_THE_WIRE = re.compile(r"(?:PassWitnessMessage|GetWitnessRecord)(?:Request|Response)?")
HERE = ("tests/style/check_words.py", "tests/style/style_test.py")


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
            for word, standard in LEFT.items():
                if match := re.search(word, ON_THE_WIRE.sub("", line), re.IGNORECASE):
                    found.append(f"{name}:{number}: \"{match[0]}\" is called {standard} here")
    return found


if __name__ == "__main__":
    source_tree.run(problems, "use the word that is named")
