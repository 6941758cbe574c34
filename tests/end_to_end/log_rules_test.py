#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""--watch-log and --watch-log-silence on the workers' output, restarts that bring no progress,
workers that are stuck in the kernel, and the share of the time that workers ran."""

import json
import re

import jobs
import lab

STEP = r"metric:step (?P<step>\d+)"
# Rank 1 waits in state D, as its vfork child never reaches the program that it should run.
STUCK = """
import os
if os.environ["RANK"] == "1":
    os.mkfifo("never")
    os.posix_spawn("/bin/true", ["true"], os.environ,
                   file_actions=[(os.POSIX_SPAWN_OPEN, 3, "never", os.O_RDONLY, 0)])
import time
time.sleep(600)
"""


class OneNode(jobs.JobTest):
    count = 1

    def hlaunch(self, script, *words, nproc=2, env=None):
        node = self.nodes[0]
        return node.start(lab.HLAUNCH, "--nproc-per-node", nproc, "--shutdown-timeout", 1, *words,
                          "--no-python", "sh", "-c", script, cwd=node.folder, env=env)


class LogRules(OneNode):
    def test_who_writes_what_fails_has_failed(self):
        run = self.hlaunch("echo step $RANK; test $RANK = 0 || echo loss=nan >&2; exec sleep 600",
                           "--watch-log", "fail:loss=(nan|inf)")
        self.assert_done([run], jobs.KILLED, 60)
        self.assert_said(run, r"job failed: rank 1 \(.*wrote 'loss=nan', which matches --watch-log "
                              r"loss=\(nan\|inf\)", "advice: .*--watch-log 'warn:PATTERN'")

    def test_who_writes_what_only_warns_is_named_and_goes_on(self):
        run = self.hlaunch("for i in 1 2 3; do echo Xid 79 $i; done", "--watch-log", "Xid [0-9]+",
                           nproc=1)
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, r"rank 0 wrote 'Xid 79 1', which matches --watch-log Xid")
        self.assertEqual(run.err.count("which matches"), 1, str(run))

    def test_a_line_that_does_not_come_again_is_a_stall(self):
        for action, code in (("fail", jobs.KILLED), ("warn", jobs.OK)):
            with self.subTest(action):
                run = self.hlaunch("echo step 7; until test -e done; do sleep 0.1; done",
                                   "--watch-log-silence", "1:^step", "--stall-action", action,
                                   nproc=1)
                run.wait_for("rank 0 is silent")
                if action == "warn":
                    (self.nodes[0].folder / "done").touch()
                self.assert_done([run], code, 60)
                self.assert_said(run, r"rank 0 is silent: no line with \^step for [\d.]+ s \(limit "
                                      r"1 s\), the last: 'step 7'")

    def test_numbers_of_named_groups_are_events(self):
        run = self.hlaunch("echo loss 0.25", "--watch-log", "metric:loss (?P<loss>[0-9.]+)",
                           "--log-dir", "logs")
        self.assert_done([run], jobs.OK, 60)
        events = [json.loads(line) for path in self.nodes[0].folder.glob("logs/*/events.jsonl")
                  for line in path.read_text(encoding="utf-8").splitlines()]
        values = [event for event in events if event["event"] == "log_value"]
        self.assertEqual(sorted((value["rank"], value["name"], value["value"])
                                for value in values), [(0, "loss", 0.25), (1, "loss", 0.25)])

    def test_a_pattern_that_is_none_is_refused(self):
        run = self.hlaunch("true", "--watch-log", "fail:(")
        self.assert_done([run], jobs.USAGE, 30)
        self.assert_said(run, r"--watch-log 'fail:\(': is no pattern of RE2: missing \)")


class Progress(OneNode):
    def test_restarts_that_bring_the_job_no_further_end_it(self):
        run = self.hlaunch("echo step 5; exit 3", "--watch-log", STEP, "--max-restarts", 9,
                           "--max-stuck-restarts", 2)
        self.assert_done([run], jobs.NO_PROGRESS, 60)
        self.assert_said(run, r"job failed: 2 restarts in a row brought the job no further than "
                              r"step 5; the last: worker rank \d on .* exited with 3",
                         r"2 of 9 restarts used; workers ran for .* \(\d+ %\); 2 restarts took ")

    def test_restarts_that_bring_it_further_do_not(self):
        run = self.hlaunch("echo step $TORCHELASTIC_RESTART_COUNT; "
                           "test $TORCHELASTIC_RESTART_COUNT = 4", "--watch-log", STEP,
                           "--max-restarts", 9, "--max-stuck-restarts", 1, "--report", "r.json")
        self.assert_done([run], jobs.OK, 60)
        self.assert_said(run, "job succeeded; 4 of 9 restarts used; workers ran for")
        report = json.loads((self.nodes[0].folder / "r.json").read_text(encoding="utf-8"))
        self.assertEqual(len(report["seconds_of_restarts"]), 4)
        self.assertLessEqual(report["seconds_running"], report["seconds"])


class StuckInTheKernel(OneNode):
    def test_the_job_ends_and_says_who_is_stuck(self):
        node = self.nodes[0]
        run = node.start(lab.HLAUNCH, "--nproc-per-node", 2, "--max-restarts", 3, "--no-python",
                         jobs.PYTHON, "-c", STUCK, cwd=node.folder,
                         env={"TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT": "1"})
        self.assert_done([run], jobs.KILLED, 60)
        self.assert_said(run, r"job failed: rank 1 .*is stuck in the kernel: .*state D",
                         "0 of 3 restarts used")
        self.assertIsNone(re.search("restart 1 of 3", run.err), str(run))


if __name__ == "__main__":
    lab.main()
