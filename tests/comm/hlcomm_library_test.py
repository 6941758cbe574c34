#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Checks what libhlcomm exports and needs: hlcomm_library_test.py LIBRARY HEADER."""

import re
import subprocess
import sys
import unittest

LIBRARY, HEADER = sys.argv.pop(1), sys.argv.pop(1)


def run(*command):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, check=True).stdout


class Library(unittest.TestCase):
    def test_shows_the_functions_of_the_header_and_nothing_else(self):
        with open(HEADER, encoding="utf-8") as file:
            declared = set(re.findall(r"\b(hlcomm_\w+)\(", re.sub(r"/\*.*?\*/", "", file.read(),
                                                                  flags=re.S)))
        shown = {line.split()[-1].split("@")[0]
                 for line in run("nm", "-D", "--defined-only", LIBRARY).splitlines()}
        self.assertGreater(len(declared), 15)
        self.assertEqual(declared, shown)

    def test_name_has_the_abi_version(self):
        with open(HEADER, encoding="utf-8") as file:
            version = re.search(r"define HLCOMM_ABI_VERSION (\d+)", file.read())[1]
        self.assertIn(f"[libhlcomm.so.{version}]", run("readelf", "-d", LIBRARY))

    def test_needs_neither_grpc_nor_protobuf(self):
        needed = run("ldd", LIBRARY)
        self.assertIn("libc.so", needed)
        self.assertNotRegex(needed, "(?i)grpc|protobuf|not found")


if __name__ == "__main__":
    unittest.main()
