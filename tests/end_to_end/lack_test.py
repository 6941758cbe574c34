#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A node that lacks what hlaunch needs ends at once, with one sentence that names it."""

import pathlib
import sys

import jobs
import lab
import old_kernel


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

    def test_calls_that_a_filter_refuses(self):
        refuse = [sys.executable, old_kernel.__file__, "--error", "EPERM", "--only"]
        for call in old_kernel.NEEDED:
            with self.subTest(call=call):
                self.assert_one_sentence(
                    self.alone(*refuse, call),
                    rf"{call}.* is refused: Operation not permitted, .*; allow it")

    def test_what_workers_leave_is_found_where_proc_is_an_outer_namespaces(self):
        """Its numbers there are other processes' in this one."""
        run = self.nodes[0].start(
            "unshare", "--pid", "--fork", "sh", "-c", 'sleep 600 & "$@"; exit $?', "sh",
            lab.HLAUNCH, "--shutdown-timeout", 1, "--no-python", "sh", "-c",
            "setsid sleep 600 & sleep 0.2")
        self.assertEqual(run.wait(30), 0, str(run))
        self.assertRegex(run.err, r"sleep\[\d+\]", str(run))

    def test_proc(self):
        without = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
        for runs in (self.alone(*without), self.together(*without)):
            self.assert_one_sentence(runs, r"/proc is missing.*; mount it")

    def test_a_detached_job_says_why_it_cannot_begin(self):
        state = self.nodes[0].folder / "state"
        state.mkdir()
        full = (f"mount -t tmpfs -o size=4k,nr_inodes=64 none {state}"
                f" && head -c 4096 /dev/zero > {state}/x")
        for wrap, says in ((["unshare", "--pid", "--fork", "--kill-child"],
                            r"/proc is missing or shows another pid namespace.*; mount it"),
                           (["unshare", "--mount", "sh", "-c", full + ' && exec "$@"', "sh"],
                            r"cannot start: cannot write .*: No space left on device")):
            run = self.nodes[0].start(*wrap, lab.HLAUNCH, "--detach", *WORKER,
                                      env={"XDG_STATE_HOME": state})
            self.assert_one_sentence([run], says)

    def test_what_a_command_prints_and_nobody_takes(self):
        run = self.nodes[0].start("sh", "-c", 'exec "$@" > /dev/full', "sh", lab.HLAUNCH, "--help")
        self.assert_one_sentence([run], "cannot write to stdout: No space left on device")


if __name__ == "__main__":
    lab.main()
