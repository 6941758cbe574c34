#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Unmodified PyTorch trains under hlaunch: two dialects of the store's protocol, several hosts."""

import os
import subprocess
import unittest

import jobs
import lab

TRAIN = str(lab.ROOT / "deploy/examples/train_ddp.py")


class WithTorch(jobs.JobTest):
    """The scenarios. Each class below runs them with one torch on one kind of network."""

    wanted = ""

    @classmethod
    def setUpClass(cls):
        if not cls.wanted:
            raise unittest.SkipTest("a base class")
        python = cls.python()
        if not python:
            raise unittest.SkipTest(f"no python with torch {cls.wanted} here; tests/run brings it "
                                    "where it can")
        done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], text=True,
                              capture_output=True, check=False, timeout=600)
        if not done.stdout.startswith(cls.wanted):
            raise unittest.SkipTest(f"{python} has torch {done.stdout.strip() or 'none'}, "
                                    f"not {cls.wanted}")

    def assert_trains(self, nproc, options=(), script_options=(), world=None):
        runs = self.run_torch(
            lambda: self.start(TRAIN, "--steps", "25", *script_options,
                               options=["--nproc-per-node", nproc, *options],
                               env={"PYTHON_EXEC": self.python()}),
            r"OK: \d+ ranks hold identical", 120)
        # The script itself compares the parameters of all ranks, and prints the version of torch.
        self.assertRegex(runs[0].out, rf"OK: {world or nproc * len(runs)} ranks hold identical "
                                      rf"parameters.*torch {self.wanted}", self.told(runs))
        return runs


class Torch1(WithTorch):
    """Debian's torch: the oldest dialect. node0's name is 127.0.1.1 on node0 itself."""

    wanted = "1.13"

    @staticmethod
    def python():
        return "/usr/bin/python3"

    def test_two_nodes_with_four_workers_each(self):
        self.assert_trains(4)

    def test_static_form_on_one_port(self):
        port = 29777
        runs = [node.start(lab.HLAUNCH, "--nnodes", 2, "--node-rank", node.index, "--master-addr",
                           "node0", "--master-port", port, TRAIN, "--steps", "25",
                           env={"PYTHON_EXEC": self.python()}) for node in self.nodes]
        self.assert_done(runs, jobs.OK, 120)
        self.assertIn("OK: 2 ranks", runs[0].out, self.told(runs))


class Torch1OnOneNode(WithTorch):
    wanted, python, count = "1.13", staticmethod(Torch1.python), 1

    def test_one_node(self):
        self.assert_trains(2)


class Torch1OnThreeNodes(WithTorch):
    wanted, python, count = "1.13", staticmethod(Torch1.python), 3

    def test_three_nodes(self):
        self.assert_trains(1)


class Torch1OnIpv6(WithTorch):
    wanted, python, ipv6_only = "1.13", staticmethod(Torch1.python), True

    def test_two_nodes_without_ipv4(self):
        self.assert_trains(1)


class Torch2(WithTorch):
    """A current torch with libuv's dialect. tests/run chooses the release."""

    wanted = "2."

    @staticmethod
    def python():
        return os.environ.get("HLAUNCH_TORCH2_PYTHON")

    def test_two_nodes_with_four_workers_each(self):
        self.assert_trains(4)


class Torch2OnIpv6(WithTorch):
    wanted, python, ipv6_only = "2.", staticmethod(Torch2.python), True

    def test_two_nodes_without_ipv4(self):
        self.assert_trains(1)


if __name__ == "__main__":
    lab.main()
