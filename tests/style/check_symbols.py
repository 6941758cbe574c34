#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""No function or variable is defined by two libraries: a program that links both gets the first one
without any message.

    check_symbols.py LIBRARY…

Mend: rename one of the two, or put it into a nameless namespace.
"""

import collections
import os
import subprocess
import sys


def definitions(libraries):
    """{symbol: the libraries that define it}, without symbols that many may define (inline)."""
    found = collections.defaultdict(set)
    for library in libraries:
        listed = subprocess.run(["nm", "--defined-only", "--format=posix", library], text=True,
                                check=True, capture_output=True, timeout=600).stdout
        for symbol, kind in (line.split()[:2] for line in listed.splitlines() if " " in line):
            if kind in "TDBR":
                found[symbol].add(os.path.basename(library))
    return found


def problems(libraries):
    twice = {symbol: names for symbol, names in definitions(libraries).items() if len(names) > 1}
    plain = subprocess.run(["c++filt"], input="\n".join(twice), text=True, check=True,
                           capture_output=True, timeout=600).stdout.splitlines()
    return [f"{name} is defined by {' and by '.join(sorted(names))}"
            for name, names in zip(plain, twice.values())]


def main():
    bad = problems(sys.argv[1:])
    for line in bad:
        print(line)
    sys.exit(__doc__ if bad or len(sys.argv) == 1 else 0)


if __name__ == "__main__":
    main()
