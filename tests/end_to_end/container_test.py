#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""hlaunch as pid 1 of a container, or below a shell that is pid 1: no init reaps orphans for it."""

import os
import pathlib
import re
import shutil
import signal
import unittest
import uuid

import jobs
import lab
import podman

FAMILY = ["family", "env", "sleep", "600"]
OPTIONS = ["--nproc-per-node", "2", "--shutdown-timeout", "1"]
NEW_PID_SPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


class WithoutInit(jobs.JobTest):
    """The minimum of a container: a new pid namespace on a node."""

    def start(self, *command, nodes=None, options=(), env=None):
        meet = ["--nnodes", len(self.nodes), "--rdzv-endpoint", self.endpoint]
        return [node.start(*NEW_PID_SPACE, lab.HLAUNCH, *meet, *options, *command,
                           env={"PYTHON_EXEC": jobs.PYTHON}) for node in self.nodes]

    def test_a_failure_as_pid_1(self):
        runs = self.start(jobs.WORKER, "family", "env", "fail", "3", "7", "0", "sleep", "600",
                          options=OPTIONS)
        self.assert_done(runs, 7, 20)

    def test_a_restart_as_pid_1(self):
        runs = self.start(jobs.WORKER, "family", "finish", "1", "fail", "3", "7", "0", "sleep",
                          "600", options=[*OPTIONS, "--max-restarts", "1"])
        self.assert_done(runs, jobs.OK, 20)

    def test_the_agent_is_killed_under_pid_1(self):
        runs = self.start("--no-python", jobs.WRAPPER, *FAMILY,
                          options=[*OPTIONS, "--loss-limit", "6"])
        self.wait_for_workers(runs, 4)
        keeper = lab.children(runs[1].pid)[0]
        os.kill(lab.children(keeper)[0], signal.SIGKILL)
        self.assert_done(runs, [(jobs.NODE_LOST, jobs.AGENT_LOST), jobs.AGENT_LOST], 25)


class UnderAShell(jobs.JobTest):
    """`sh -c "hlaunch …; …"` as pid 1: processes that hlaunch leaves behind would stay."""

    count = 1
    # The shell counts processes itself: a separate program might run before or after other
    # processes.
    SCRIPT = '"$@"; echo "code $?"; set -- /proc/[0-9]*; echo "$#"'

    def run_under_shell(self, *words):
        return self.nodes[0].start(
            *NEW_PID_SPACE, "sh", "-c", self.SCRIPT, "sh", lab.HLAUNCH, *OPTIONS, "--no-python",
            jobs.WRAPPER, *words)

    def hlaunch_of(self, run):
        shell = lab.children(run.pid)[0]
        return lab.children(shell)[0]

    def test_nothing_is_left_not_even_a_zombie(self):
        run = self.run_under_shell("family", "env", "fail", "1", "7", "0", "sleep", "600")
        self.assert_done([run], 0, 15)
        # The shell is the only process that is left.
        self.assertRegex(run.out, r"code 7\n1\n", str(run))

    def test_nothing_lives_after_agent_or_keeper_was_killed(self):
        for name, pid_of, code in (
                ("agent", lambda run: lab.children(self.hlaunch_of(run))[0], jobs.AGENT_LOST),
                ("keeper", self.hlaunch_of, 137)):
            with self.subTest(name):
                run = self.run_under_shell(*FAMILY)
                self.wait_for_workers([run], 2)
                os.kill(pid_of(run), signal.SIGKILL)
                self.assert_done([run], 0, 15)
                self.assertIn(f"code {code}\n", run.out, str(run))


class Podman(jobs.JobTest):
    """A real container runtime: its seccomp filter, its capabilities, hlaunch as its pid 1.

    The image is this machine's own root, read only, under an overlay.
    """

    def setUp(self):
        if os.geteuid() != 0 or not shutil.which("podman") or not shutil.which("runc"):
            raise unittest.SkipTest("needs root, podman and runc")
        super().setUp()
        self.podman = podman.Podman(self.lab.folder).start
        self.names = []
        probe = self.podman("run", "--rm", "--network=none", "--rootfs", "/:O", "/bin/true")
        errors = probe.communicate(timeout=60 * lab.PATIENCE)[1]
        if probe.returncode != 0:
            raise unittest.SkipTest(f"podman cannot run here: {errors.decode().strip()[-200:]}")

    def start_containers(self, *command):
        self.names = [f"hlaunch-{uuid.uuid4().hex[:8]}" for _ in self.nodes]
        for name in self.names:
            self.addCleanup(lambda name=name: self.podman("rm", "-f", name).communicate(
                timeout=60 * lab.PATIENCE))
        return [self.podman(
            "run", "--rm", "--name", name, f"--network=ns:/proc/{node.init}/ns/net",
            "--hostname", node.name, "-e", f"PYTHON_EXEC={jobs.PYTHON}", "--rootfs", "/:O",
            lab.HLAUNCH, "--nnodes", "2", "--rdzv-endpoint", f"{self.nodes[0].ip}:29400",
            *OPTIONS, "--loss-limit", "6", *command)
            for name, node in zip(self.names, self.nodes)]

    def assert_codes(self, processes, codes, timeout=30):
        for process, code, name in zip(processes, codes, self.names):
            out, err = process.communicate(timeout=timeout * lab.PATIENCE)
            self.assertIn(process.returncode, code if isinstance(code, tuple) else (code,),
                          f"{name}: {out.decode()[-2000:]}\n{err.decode()[-2000:]}")

    def pid_1(self, name):
        """The pid, on this machine, of the container's first process: hlaunch's keeper."""
        def ask():
            out = self.podman("inspect", "-f", "{{.State.Pid}}", name).communicate(
                timeout=20 * lab.PATIENCE)[0]
            return int(out) if re.fullmatch(rb"[1-9]\d*\s*", out) else 0
        return lab.poll(ask, 20, 0.2)

    @staticmethod
    def workers_of(keeper):
        return sum(lab.command_line(pid).startswith(f"{jobs.PYTHON} ") for pid in lab.descendants(keeper))

    def wait_for_family(self, keeper):
        """Waits until both workers have forked all their descendants."""
        self.assertTrue(lab.poll(lambda: len(lab.descendants(keeper)) >= 1 + 2 * 6, 20, 0.1))

    def test_a_failure(self):
        self.assert_codes(self.start_containers("--no-python", jobs.WRAPPER, "family", "fail", "3",
                                                "7", "0", "sleep", "600"), [7, 7])

    def test_the_agent_is_killed(self):
        processes = self.start_containers("--no-python", jobs.WRAPPER, *FAMILY)
        keeper = self.pid_1(self.names[1])
        self.wait_for_family(keeper)
        family = lab.descendants(keeper)
        os.kill(lab.children(keeper)[0], signal.SIGKILL)
        self.assert_codes(processes, [(jobs.NODE_LOST, jobs.AGENT_LOST), jobs.AGENT_LOST])
        self.assertTrue(lab.poll(lambda: not any(pathlib.Path(f"/proc/{pid}").exists()
                                                 for pid in family), 5))

    def test_stop_is_graceful(self):
        processes = self.start_containers(jobs.WORKER, "env", "sleep", "600")
        for name in self.names:
            self.assertTrue(lab.poll(lambda name=name: self.workers_of(self.pid_1(name)) == 2, 20, 0.2))
        self.podman("stop", "-t", str(10 * lab.PATIENCE), self.names[0]).communicate(
            timeout=30 * lab.PATIENCE)
        self.assert_codes(processes, [143, jobs.NODE_STOPPED])


if __name__ == "__main__":
    lab.main()
