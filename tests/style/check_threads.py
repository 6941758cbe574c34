#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Test programs that ThreadSanitizer leaves out start no thread: they refer to no function that
does.

    check_threads.py PROGRAM…
"""

import os
import subprocess
import sys

START = ("pthread_create", "_ZNSt6thread15_M_start_thread")


def starts_threads(program):
    symbols = subprocess.run(["nm", "-D", "--undefined-only", program], text=True, check=True,
                             capture_output=True, timeout=600).stdout
    return any(start in symbols for start in START)


def main():
    bad = [os.path.basename(program) for program in sys.argv[1:] if starts_threads(program)]
    for name in bad:
        print(f"{name} can start threads: take the file that does out of hlaunch_one_thread in "
              "tests/CMakeLists.txt")
    sys.exit(1 if bad or len(sys.argv) == 1 else 0)


if __name__ == "__main__":
    main()
