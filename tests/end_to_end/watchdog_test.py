#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker that exceeds a timer of torch's watchdog is killed, and the report says so."""

import os
import re

import jobs
import lab
import torch_test

WORKER = str(lab.WORKERS / "timer_worker.py")


class Watchdog(torch_test.WithTorch):
    wanted, python, count = "2.", staticmethod(torch_test.Torch2.python), 1

    def hlaunch(self, *words, env=None):
        return self.nodes[0].start(lab.HLAUNCH, "--nproc-per-node", 2, *words,
                                   env={"PYTHON_EXEC": self.python(),
                                        "TORCHELASTIC_ENABLE_FILE_TIMER": 1, **(env or {})})

    def test_a_late_worker_is_ended_with_the_signal_it_chose(self):
        for signal, code in (("SIGKILL", 137), ("SIGTERM", 143)):
            with self.subTest(signal):
                run = self.hlaunch(WORKER, signal)
                self.assert_done([run], code, 60)
                self.assert_said(run, rf"watchdog sent {signal} to .*'train_step 7' has expired",
                                 r"rank 1")
                path = re.search(r"armed (\S+)", run.out)[1]
                self.assertFalse(os.path.exists(path), "the pipe goes with the job")

    def test_the_job_goes_on_where_restarts_are_left(self):
        run = self.hlaunch("--max-restarts", 1, WORKER, "SIGKILL")
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, r"watchdog sent SIGKILL")

    def test_the_pipe_is_where_the_user_wants_it(self):
        path = self.nodes[0].folder / "my pipe"
        run = self.hlaunch(WORKER, "SIGKILL", env={"TORCHELASTIC_TIMER_FILE": path})
        self.assert_done([run], 137, 60)
        self.assertIn(f"armed {path}", run.out, str(run))
        self.assertFalse(path.exists())


if __name__ == "__main__":
    lab.main()
