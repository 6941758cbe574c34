#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Heartbeats tell which worker stalls. The restart policy decides what follows."""

import pathlib
import re
import signal
import subprocess
import unittest

import jobs
import lab

WORKER = str(lab.WORKERS / "heartbeat_worker.py")
PACKAGE = str(lab.BIN.parent / "python")


class ThreeWorkers(jobs.JobTest):
    """Three workers on one node; rank 1 stalls."""

    count = 1

    def hlaunch(self, *words, timeout=6):
        """The time-out is longer than any pause of the other workers."""
        node = self.nodes[0]
        return node.start(lab.HLAUNCH, "--nproc-per-node", 3, "--heartbeat-timeout", timeout,
                          "--shutdown-timeout", 1, *words, cwd=node.folder,
                          env={"PYTHON_EXEC": jobs.PYTHON, "PYTHONPATH": PACKAGE})


class Stalls(ThreeWorkers):
    def test_the_stalled_rank_is_named_and_killed(self):
        for way in ("sleep", "busy_in_c", "busy_in_one_call", "stopped"):
            with self.subTest(way):
                run = self.hlaunch(WORKER, way)
                self.assert_done([run], 128 + signal.SIGKILL, 60)
                self.assert_said(run, r"job failed: rank 1 \(node0, .*stalled: no heartbeat for "
                                      r"[\d.]+ s \(limit 6 s\), last step 5")
                self.assertNotRegex(run.err, "consequences")

    def test_the_report_shows_where_it_stood_and_the_log_directory_has_the_stacks(self):
        for way, function in (("sleep", "sleep"), ("busy_in_c", "busy_in_c"), ("stopped", "")):
            with self.subTest(way):
                run = self.hlaunch("--log-dir", "logs", WORKER, way)
                self.assert_done([run], 128 + signal.SIGKILL, 90)
                self.assert_said(run, r"rank 1 stands in .*all stacks are in .*/1/stacks.txt")
                path = re.search(r"all stacks are in (\S+)", run.err)[1]
                kept = pathlib.Path(path).read_text(encoding="utf-8")
                self.assertRegex(kept, r"rank 1: no heartbeat for .*last step 5\n\npython")
                if function:  # A stopped process can only be read with py-spy and gdb.
                    self.assert_said(run, rf'\| +File ".*heartbeat_worker.py", line \d+, in {function}')

    def test_a_step_that_does_not_move_is_a_stall(self):
        run = self.hlaunch(WORKER, "same_step")
        self.assert_done([run], 128 + signal.SIGKILL, 60)
        self.assert_said(run, r"job failed: rank 1 .*stalled: at step 5 for [\d.]+ s "
                              r"\(limit 6 s\), though its heartbeats come")

    def test_who_announced_a_pause_or_never_sent_a_heartbeat_is_left_alone(self):
        for way in ("announced", "silent"):
            with self.subTest(way):
                self.nodes[0].run("rm", "-f", "done", cwd=self.nodes[0].folder)
                # Ten times the time that a worker needs to start.
                run = self.hlaunch(WORKER, way, timeout=10)
                unheard = "no heartbeat has come from rank 1: not watched"
                if way == "silent":
                    run.wait_for(unheard)
                    (self.nodes[0].folder / "done").touch()
                self.assert_done([run], jobs.OK, 60)
                self.assertNotIn("has stalled", run.err)
                self.assertEqual(unheard in run.err, way == "silent", str(run))

    def test_nobody_listens_unless_it_is_asked_for(self):
        node = self.nodes[0]
        (node.folder / "done").touch()
        run = node.start(lab.HLAUNCH, WORKER, "silent", cwd=node.folder,
                         env={"PYTHON_EXEC": jobs.PYTHON, "PYTHONPATH": PACKAGE})
        self.assert_done([run], jobs.OK, 60)
        self.assertEqual(set(run.out.split("\n")), {"nobody listens", ""}, str(run))

    def test_a_worker_that_has_stalled_may_go_on_where_that_is_only_said(self):
        run = self.hlaunch("--stall-action", "warn", WORKER, "pauses")
        run.wait_for("rank 1 has stalled: no heartbeat")
        (self.nodes[0].folder / "done").touch()
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, r"rank 1 has stalled: no heartbeat", r"rank 1 goes on")

    def test_the_job_goes_on_where_restarts_are_left(self):
        run = self.hlaunch("--max-restarts", 1, WORKER, "sleep")
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, r"rank 1 has stalled: no heartbeat")


def has_torch():
    return subprocess.run([jobs.PYTHON, "-c", "import torch"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(has_torch(), f"{jobs.PYTHON} has no torch")
class StallsInTorch(ThreeWorkers):
    """The others wait for rank 1 in a barrier of torch and stall as well."""

    def test_who_waits_for_the_stalled_rank_is_not_blamed(self):
        for _ in range(3):
            run = self.hlaunch(WORKER, "sleep", "gloo")
            self.assert_done([run], 128 + signal.SIGKILL, 90)
            self.assert_said(run, r"rank [02] has stalled", r"rank 1 has stalled",
                             r"rank [02] stands in .*barrier \(",
                             r"job failed: rank 1 .*stalled: no heartbeat for .*last step 5")
            self.assertNotRegex(run.err, "consequences")


if __name__ == "__main__":
    lab.main()
