#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A static program needs no file of a machine and no system call newer than Linux 4.18."""

import pathlib
import shutil
import struct

import jobs
import lab
import old_kernel

OLD_KERNEL = pathlib.Path(__file__).with_name("old_kernel.py")
WORKER = lab.BIN.parent / "tests/workers/hlaunch_test_static_worker"
# The root has none of these services except files and dns.
SERVICES = "hosts: sss resolve files mymachines dns myhostname\n"


class EmptyRoot(jobs.JobTest):
    """The root of each node has hlaunch's programs, a static worker, and nothing else."""

    def setUp(self):
        if not WORKER.exists():
            self.skipTest("the programs are not static (HLAUNCH_STATIC)")
        super().setUp()
        self.root = self.lab.folder / "root"
        for folder in ("bin", "dev", "etc", "proc", "tmp"):
            (self.root / folder).mkdir(parents=True)
        for program in ("hlaunch", "hlaunch-agent"):
            shutil.copy(lab.BIN / program, self.root / "bin")
        shutil.copy(WORKER, self.root / "bin/worker")
        (self.root / "etc/nsswitch.conf").write_text(SERVICES, encoding="utf-8")

    def in_root(self, node, *words, **options):
        prepare = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && '
                   'exec chroot "$0" /bin/hlaunch "$@"')
        return node.start("unshare", "--mount", "sh", "-c", prepare, self.root, *words, **options)

    def assert_ranks(self, runs, count):
        self.assert_done(runs, jobs.OK, 20)
        said = sorted(line for run in runs for line in run.out.splitlines())
        self.assertEqual(said, [f"[{rank}] rank {rank} of {count}" for rank in range(count)],
                         self.told(runs))

    def test_one_node(self):
        self.assert_ranks([self.in_root(self.nodes[0], "--nproc-per-node", 2, "--no-python",
                                        "/bin/worker")], 2)

    def meet(self, host, **options):
        runs = [self.in_root(node, "--nnodes", 2, "--rdzv-endpoint", f"{host}:29400", "--no-python",
                             "/bin/worker", **options) for node in self.nodes]
        self.assert_ranks(runs, 2)
        return runs

    def test_two_nodes_by_a_name_in_etc_hosts(self):
        (self.root / "etc/hosts").write_text(f"{self.nodes[0].ip} head\n", encoding="utf-8")
        self.meet("head")

    def test_two_nodes_by_a_name_that_only_getent_knows(self):
        shutil.copy(WORKER, self.root / "bin/getent")
        runs = self.meet("head", env={"HOST_AND_ADDRESS": f"head {self.nodes[0].ip}",
                                      "PATH": "/bin:/usr/bin:/sbin:/usr/sbin"})
        for run in runs:
            self.assert_said(run, f"knows 'head'; getent says {self.nodes[0].ip}")


class Addresses(jobs.JobTest):
    """Programs that hear users or hosts who prove nothing have other addresses in each run."""

    def setUp(self):
        if not WORKER.exists():
            self.skipTest("the programs are not static (HLAUNCH_STATIC)")
        super().setUp()

    def test_programs(self):
        position_independent = 3  # ET_DYN
        for program in ("hlaunch-agent", "hlaunchd", "hlaunch-pmix"):
            with open(lab.BIN / program, "rb") as file:
                kind = struct.unpack_from("<H", file.read(64), 16)[0]
            self.assertEqual(kind, position_independent, program)

    def test_the_agent_of_one_node(self):
        say = ["--no-python", "sh", "-c", "readlink /proc/$PPID/exe"]
        for words, program in (([], "hlaunch"), (["--metrics-port", 0], "hlaunch-agent"),
                               (["--any-user"], "hlaunch-agent")):
            run = self.nodes[0].start(lab.HLAUNCH, *words, *say)
            self.assert_done([run], jobs.OK, 20)
            self.assertEqual(pathlib.Path(run.out.strip()).name, program, str(run))


class OldKernel(jobs.JobTest):
    """Linux 4.18, as far as system calls can tell."""

    error, says = "ENOSYS", "Function not implemented"

    def old(self, node, *words):
        return node.start(jobs.PYTHON, OLD_KERNEL, "--error", self.error, *words)

    def start_old(self, *words):
        meet = ["--nnodes", 2, "--rdzv-endpoint", self.endpoint]
        return [self.old(node, lab.HLAUNCH, *meet, "--no-python", *words) for node in self.nodes]

    def test_it_is_old(self):
        run = self.old(self.nodes[0], jobs.PYTHON, "-c", "import os; os.pidfd_open(os.getpid())")
        self.assertEqual(run.wait(20), 1)
        self.assertIn(self.says, run.err)

    def test_one_node(self):
        run = self.old(self.nodes[0], lab.HLAUNCH, "--nproc-per-node", 2, "--no-python", "sh", "-c",
                       "echo rank $RANK")
        self.assert_done([run], jobs.OK, 20)
        self.assertEqual(sorted(run.out.splitlines()), ["[0] rank 0", "[1] rank 1"], str(run))

    def test_two_nodes(self):
        runs = self.start_old("sh", "-c", "echo rank $RANK")
        self.assert_done(runs, jobs.OK, 30)
        said = sorted(line for run in runs for line in run.out.splitlines())
        self.assertEqual(said, ["[0] rank 0", "[1] rank 1"], self.told(runs))

    def test_a_worker_that_fails_takes_all_with_it(self):
        runs = self.start_old("sh", "-c", "(setsid sleep 600 &); test $RANK = 0 || exit 3; sleep 600")
        self.assert_done(runs, 3, 30)
        for run in runs:
            self.assert_said(run, r"rank 1 .*exited with code 3")

    def test_devices_and_check(self):
        for word in ("devices", "check"):
            run = self.old(self.nodes[0], lab.HLAUNCH, word, "--json")
            self.assertIn(run.wait(30), (jobs.OK, jobs.PREFLIGHT), str(run))
            self.assertIn("{", run.out, str(run))
        self.assert_nothing_left()

    def test_each_call_is_done_without(self):
        """Each newer call alone is refused: what hlaunch does instead must not need another."""
        runs = {call: self.start_without(call, 29400 + number)
                for number, call in enumerate(old_kernel.CALLS)}
        for call, (one, two) in runs.items():
            for run in one + two:
                self.assertEqual(run.wait(60), jobs.OK, f"without {call}\n{run}")
            said = sorted(line for run in two for line in run.out.splitlines())
            self.assertEqual(said, ["[0] rank 0", "[1] rank 1"], f"without {call}")
            self.assertEqual(one[0].out, "rank 0\n", f"without {call}")
        self.assert_nothing_left()

    def start_without(self, call, port):
        """Starts a job of one node and one of both; their workers leave processes behind."""
        worker = ["--no-python", "sh", "-c", "(setsid sleep 600 &); echo rank $RANK"]
        meet = ["--nnodes", 2, "--rdzv-endpoint", f"node0:{port}", "--rdzv-id", call]
        return ([self.old(self.nodes[0], "--only", call, lab.HLAUNCH, *worker)],
                [self.old(node, "--only", call, lab.HLAUNCH, *meet, *worker)
                 for node in self.nodes])


class OldRuntime(OldKernel):
    """An old container runtime: a system call that it does not know fails with EPERM."""

    error, says = "EPERM", "Operation not permitted"

    def setUp(self):
        if not WORKER.exists():
            self.skipTest("the programs are not static (HLAUNCH_STATIC): glibc needs clone3 there")
        super().setUp()


if __name__ == "__main__":
    lab.main()
