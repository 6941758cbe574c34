#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Code that runs between clone and exec, in its parent's memory, calls no library and no sanitizer.

    check_child_calls.py OBJECT...

Mend: mark what the child runs with HLAUNCH_IN_CHILD, and let it use RawSyscall only.
"""

import re
import subprocess
import sys

CHILD = re.compile(r"::\(anonymous namespace\)::"
                   r"(RunChild|Fail|CloseFrom|Bind|TakeStreams|ResetSignals)\(")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# x86-64 calls, or jumps to another function's name to leave; arm64 branches with link.
CALL = re.compile(r"\b(?:call|bl)\b|R_X86_64_PLT32")


def calls(file):
    """Yields (function of the child, the line that calls something outside of the child)."""
    text = subprocess.run(["objdump", "--disassemble", "--reloc", "--demangle",
                           "--no-show-raw-insn", file],
                          text=True, check=True, capture_output=True, timeout=600).stdout
    function = ""
    for line in text.splitlines():
        if named := FUNCTION.match(line):
            function = named[1]
        elif CHILD.search(function) and CALL.search(line):
            yield function, line.strip()


def runs_in_child(file):
    text = subprocess.run(["nm", "--demangle", file], text=True, check=True, capture_output=True,
                          timeout=600).stdout
    return "::RunChild(" in text


def main():
    files = [file for file in sys.argv[1:] if runs_in_child(file)]
    if not files:
        sys.exit("no object has RunChild: this check looks at nothing")
    bad = [(function, line) for file in files for function, line in calls(file)
           if "(anonymous namespace)" not in line]
    for function, line in bad:
        print(f"{function} calls {line}")
    sys.exit(__doc__ if bad else 0)


if __name__ == "__main__":
    main()
