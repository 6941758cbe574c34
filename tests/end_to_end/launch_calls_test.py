#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What a launch asks of the system: the numbers here may only fall."""

import os
import pathlib
import tempfile
import unittest

import lab
import traced_calls

WORKER = lab.BIN.parent / "tests/workers/hlaunch_test_static_worker"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"}
# Without devices and with hlaunch's own calls alone: some depend on the control group's version.
MOST_FOR_ONE = 430
MOST_FOR_EACH_FURTHER = 118


@unittest.skipUnless(WORKER.exists(), "the programs are not static (HLAUNCH_STATIC)")
class Calls(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def launch(self, workers):
        (self.folder / "empty").mkdir(exist_ok=True)
        calls = traced_calls.Calls(
            [str(lab.HLAUNCH), "--sysroot", str(self.folder / "empty"), "--nproc-per-node",
             str(workers), "--no-python", "/bin/true"],
            {**ENVIRONMENT, "TMPDIR": str(self.folder)})
        self.assertEqual(calls.status, 0)
        self.assertEqual(os.listdir(self.folder), ["empty"])
        return calls

    def calmest(self, workers, most):
        """A launch that asks at most so often, else the calmest of five: on a busy machine processes
        meet each other in more pieces, which are read one by one."""
        launches = []
        while len(launches) < 5 and not any(one.without_waits() <= most for one in launches):
            launches.append(self.launch(workers))
        return min(launches, key=lambda one: one.without_waits())

    def test_one_worker(self):
        calls = self.calmest(1, MOST_FOR_ONE)
        self.assertLessEqual(calls.without_waits(), MOST_FOR_ONE)
        self.assertEqual(calls.count("clone"), 2, "an agent and a worker")
        self.assertEqual(calls.threads(), 0)
        self.assertEqual(calls.count("mkdir", "mkdirat"), 1)

    def test_each_further_worker(self):
        two = self.launch(2)
        ten = self.calmest(10, two.without_waits() + 8 * MOST_FOR_EACH_FURTHER)
        self.assertLessEqual((ten.without_waits() - two.without_waits()) / 8,
                             MOST_FOR_EACH_FURTHER)
        self.assertEqual(ten.count("mkdir", "mkdirat"), 1)


if __name__ == "__main__":
    lab.main()
