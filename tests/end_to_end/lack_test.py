#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A node that lacks what hlaunch needs ends at once, with one sentence that names it."""

import pathlib

import jobs
import lab


WORKER = ["--no-python", "sh", "-c", "echo rank $RANK"]


def as_user(number):
    """Limits of processes do not apply to root, unless root is that of a user namespace."""
    mapped = pathlib.Path("/proc/self/uid_map").read_text(encoding="utf-8").split()
    return ["setpriv", "--clear-groups", "--reuid", number] if mapped[:2] == ["0", "0"] else []


class Lack(jobs.JobTest):
    def alone(self, *prefix):
        """Starts a job of one node behind the words of `prefix`."""
        return [self.nodes[0].start(*prefix, lab.HLAUNCH, *WORKER)]

    def together(self, *prefix):
        return [self.of_two(node, *prefix) for node in self.nodes]

    def of_two(self, node, *prefix):
        return node.start(*prefix, lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", self.endpoint,
                          "--join-timeout", 20, *WORKER)

    def assert_one_sentence(self, runs, pattern):
        """Besides, the host of the rendezvous may warn that it carries few nodes."""
        self.assert_done(runs, jobs.NO_RESOURCES, 30)
        for run in runs:
            lines = [line for line in run.err.splitlines() if "this host carries" not in line]
            self.assertEqual((len(lines), run.out), (1, ""), str(run))
            self.assertRegex(lines[0], f"^hlaunch.*: .*{pattern}", str(run))

    def test_descriptors(self):
        for limit in (5, 6, 7, 8, 12, 16, 20):
            with self.subTest(limit=limit):
                self.assert_one_sentence(self.alone("prlimit", f"--nofile={limit}"),
                                         r"Too many open files; raise the limit \(ulimit -n")

    def test_descriptors_on_two_nodes(self):
        for limit in (5, 7, 8, 12, 16, 24, 36):
            with self.subTest(limit=limit):
                self.assert_one_sentence(self.together("prlimit", f"--nofile={limit}"),
                                         r"Too many open files; raise the limit \(ulimit -n")

    def test_a_low_soft_limit_of_descriptors_is_raised(self):
        for runs in (self.alone("prlimit", "--nofile=8:"),
                     self.together("prlimit", "--nofile=8:")):
            self.assert_done(runs, jobs.OK, 30)

    def test_processes_on_two_nodes(self):
        for limit in (1, 2, 6, 14, 26):
            with self.subTest(limit=limit):
                runs = [self.of_two(node, "prlimit", f"--nproc={limit}",
                                    *as_user(61234 + node.index)) for node in self.nodes]
                self.assert_one_sentence(
                    runs, r"Resource temporarily unavailable; raise the limit of processes")

    def test_address_space_on_two_nodes(self):
        for megabytes in (60, 100, 200, 300):
            with self.subTest(megabytes=megabytes):
                self.assert_one_sentence(self.together("prlimit", f"--as={megabytes * 2**20}"),
                                         r"raise the limit \(ulimit -v\)")

    def test_proc(self):
        without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        for runs in (self.alone(*without), self.together(*without)):
            self.assert_one_sentence(runs, r"/proc is missing.*; mount it")


if __name__ == "__main__":
    lab.main()
