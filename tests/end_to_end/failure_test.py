#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""A worker fails: all nodes hear of it at once, the job restarts or ends, and nothing is left."""

import dataclasses
import json
import os
import pathlib
import re
import signal

import jobs
import lab


@dataclasses.dataclass
class Failure:
    """A way for rank 3 (on node1) to fail, and what users must be told."""

    name: str
    actions: list  # Arguments of e2e_worker.py.
    code: int
    says: list  # Patterns that the output of each node's hlaunch must match.
    report: str = ""  # Exactly one node prints the whole report, which contains this.
    kill: int = 0  # A signal to send to rank 3 from outside.
    program: tuple = (jobs.WORKER,)


FAILURES = [
    Failure("exit code", ["env", "fail", "3", "7", "0", "sleep", "600"], 7,
            [r"rank 3\b", r"node1", r"\b7\b"], report="planted failure of rank 3"),
    Failure("exit code, with a family", ["family", "env", "fail", "3", "9", "0", "sleep", "600"], 9,
            [r"rank 3\b", r"node1", r"\b9\b"]),
    Failure("SIGKILL from outside", ["env", "sleep", "600"], 128 + signal.SIGKILL,
            [r"rank 3\b", r"node1", r"SIGKILL"], kill=signal.SIGKILL),
    Failure("SIGSEGV", ["family", "env", "sleep", "600"], 128 + signal.SIGSEGV,
            [r"rank 3\b", r"node1", r"SIGSEGV"], kill=signal.SIGSEGV),
    Failure("behind a wrapper", ["family", "env", "fail", "3", "5", "0", "sleep", "600"], 5,
            [r"rank 3\b", r"node1", r"\b5\b"], program=("--no-python", jobs.WRAPPER)),
]

OPTIONS = ["--nproc-per-node", "2", "--shutdown-timeout", "1"]


class WorkerFails(jobs.JobTest):
    def kill_rank(self, rank, runs, number):
        workers = self.wait_for_workers(runs, 4)
        victim = next(facts for facts in workers if facts["RANK"] == str(rank))
        node = self.nodes[int(victim["GROUP_RANK"])]
        node.run("kill", f"-{int(number)}", victim["pid"])

    def test_the_code_comes_through_everywhere_with_one_report(self):
        for failure in FAILURES:
            with self.subTest(failure.name):
                runs = self.start(*failure.program, *failure.actions,
                                  options=[*OPTIONS, "--report", "report.json"])
                if failure.kill:
                    self.kill_rank(3, runs, failure.kill)
                self.assert_done(runs, failure.code, 20)
                for run in runs:
                    self.assert_said(run, *failure.says)
                reports = [run for run in runs if failure.report in "".join(jobs.own_lines(run))]
                self.assertEqual(len(reports), 1 if failure.report else 2, self.told(runs))
                self.assert_each_node_reports(failure)

    def assert_each_node_reports(self, failure):
        whole = []
        for node in self.nodes:
            report = json.loads((node.folder / "report.json").read_text(encoding="utf-8"))
            cause = report["first_cause"]
            self.assertEqual((cause["rank"], cause["host"], cause["local_rank"]), (3, "node1", 1),
                             report)
            self.assertEqual((report["exit_code"], report["written_by"]),
                             (failure.code, node.name), report)
            if report["whole"]:
                self.assertIn(failure.report, cause["log_tail"] or "", report)
            whole.append(report["whole"])
        self.assertEqual(sorted(whole), [False, True])

    def test_nodes_that_share_a_folder_keep_the_whole_report(self):
        shared = self.lab.folder / "report.json"
        runs = self.start(jobs.WORKER, *FAILURES[0].actions,
                          options=[*OPTIONS, "--report", shared])
        self.assert_done(runs, 7, 20)
        report = json.loads(shared.read_text(encoding="utf-8"))
        self.assertTrue(report["whole"], report)
        self.assertIn("planted failure of rank 3", report["first_cause"]["log_tail"], report)

    def test_a_restart_gives_all_the_same_count_and_can_succeed(self):
        for name, kill in (("exit code", None), ("SIGKILL", signal.SIGKILL)):
            with self.subTest(name):
                plan = ["family", "env", "finish", "1"]
                plan += ["sleep", "600"] if kill else ["fail", "3", "7", "0", "sleep", "600"]
                runs = self.start(jobs.WORKER, *plan, options=[*OPTIONS, "--max-restarts", "1"])
                if kill:
                    self.kill_rank(3, runs, kill)
                self.assert_done(runs, jobs.OK, 30)
                again = [facts for run in runs for facts in jobs.environments(run)
                         if facts["TORCHELASTIC_RESTART_COUNT"] == "1"]
                self.assertEqual(sorted(facts["RANK"] for facts in again), list("0123"),
                                 self.told(runs))
                self.assertEqual(len({facts["MASTER_PORT"] for facts in again}), 1)

    def test_the_budget_is_the_jobs_not_the_nodes(self):
        plan = ["env", "fail", "0", "7", "0", "fail", "3", "8", "1", "sleep", "600"]
        runs = self.start(jobs.WORKER, *plan, options=[*OPTIONS, "--max-restarts", "1"])
        self.assert_done(runs, 8, 30)

    def test_all_ends_well_with_every_worker_told_its_place(self):
        runs = self.start(jobs.WORKER, "family", "env", options=OPTIONS)
        self.assert_done(runs, jobs.OK, 30)
        for run in runs:  # The processes of the families.
            self.assert_said(run, r"the workers exited and left \d+ processes behind: .*\[\d+\]")
        workers = [facts for run in runs for facts in jobs.environments(run)]
        places = sorted((facts["RANK"], facts["GROUP_RANK"], facts["LOCAL_RANK"],
                         facts["WORLD_SIZE"], facts["LOCAL_WORLD_SIZE"]) for facts in workers)
        self.assertEqual(places, [("0", "0", "0", "4", "2"), ("1", "0", "1", "4", "2"),
                                  ("2", "1", "0", "4", "2"), ("3", "1", "1", "4", "2")])
        self.assertEqual({facts["MASTER_ADDR"] for facts in workers}, {self.nodes[0].ip})
        self.assertEqual({facts["TORCHELASTIC_USE_AGENT_STORE"] for facts in workers}, {"True"})


class OthersTakeLong(jobs.JobTest):
    """The worker on node1 ignores SIGTERM, so the job's end takes as long as it may."""

    def test_the_report_waits_for_nobody(self):
        folder = self.nodes[0].folder
        (folder / "message").touch()  # Only an existing file is written.
        options = ["--shutdown-timeout", "600", "--report", "report", "--termination-log", "message"]
        runs = self.start(jobs.WORKER, "stubborn", "env", "await", "go", "fail", "0", "7", "0",
                          options=options)
        stubborn = next(facts for facts in self.wait_for_workers(runs, 2) if facts["RANK"] == "1")
        (folder / "go").touch()
        runs[0].wait_for(r"job failed: rank 0 .*exited with code 7")
        runs[0].wait_for(r"exit code 7$")
        runs[1].wait_for(r"rank 0 .*7.*; stopping 1 worker, up to 600 s \(--shutdown-timeout\)")
        self.assertIn("rank 0", (folder / "report").read_text(encoding="utf-8"))
        self.assertIn("rank 0", (folder / "message").read_text(encoding="utf-8"))
        for run in runs:
            self.assertIsNone(run.process.poll(), self.told(runs))
        self.nodes[1].run("kill", "-KILL", stubborn["pid"])
        self.assert_done(runs, 7, 20)
        self.assertEqual(runs[0].err.count("job failed"), 1, str(runs[0]))


class WorkerFailsOnOneNode(jobs.JobTest):
    count = 1

    def test_codes(self):
        for plan, kill, code in ((["family", "env", "fail", "1", "7", "0", "sleep", "600"], 0, 7),
                                 (["family", "env", "sleep", "600"], signal.SIGKILL, 137)):
            with self.subTest(code=code):
                runs = self.start(jobs.WORKER, *plan, options=OPTIONS)
                if kill:
                    workers = self.wait_for_workers(runs, 2)
                    self.nodes[0].run("kill", "-KILL", workers[1]["pid"])
                self.assert_done(runs, code, 15)

    def test_restart(self):
        both = self.lab.folder / "both"
        plan = ["env", "await", both, "finish", "1", "fail", "1", "7", "0", "sleep", "600"]
        runs = self.start(jobs.WORKER, *plan, options=[*OPTIONS, "--max-restarts", "1"])
        self.wait_for_workers(runs, 2)
        both.touch()
        self.assert_done(runs, jobs.OK, 20)
        self.assertEqual([facts["TORCHELASTIC_RESTART_COUNT"]
                          for facts in jobs.environments(runs[0])], list("0011"))


class WhatFollowsAFailure(jobs.JobTest):
    """--end-on, --free-on and --restart-pause. Workers' exit codes depend on the attempt."""

    count = 1

    def hlaunch(self, script, *options):
        node = self.nodes[0]
        return node.start(lab.HLAUNCH, "--shutdown-timeout", 1, *options, "--no-python", "sh", "-c",
                          script, cwd=node.folder)

    def test_a_code_that_is_free_costs_no_restart(self):
        run = self.hlaunch("echo try $TORCHELASTIC_RESTART_COUNT; "
                           "test $TORCHELASTIC_RESTART_COUNT = 2 || exit 75",
                           "--free-on", "75", "--max-restarts", 0, "--verbose")
        self.assert_done([run], jobs.OK, 30)
        self.assertEqual(re.findall(r"try \d+", run.out), ["try 0", "try 1", "try 2"], str(run))
        self.assert_said(run, r"exited with 75; not charged: exit code 75 is in --free-on\n",
                         r"a restart that is not charged begins in 1 s \(restarts follow each other",
                         "job succeeded; 0 of 0 restarts used, 2 more do not count")

    def test_a_code_that_ends_the_job_does_so_with_restarts_left(self):
        run = self.hlaunch("exit $((2 + TORCHELASTIC_RESTART_COUNT))", "--end-on", "3,oom",
                           "--max-restarts", 5)
        self.assert_done([run], 3, 30)
        self.assert_said(run, "exited with 2; restart 1 of 5", "job failed: rank 0 ",
                         "1 of 5 restarts used")

    def test_a_pause_is_named_and_kept(self):
        run = self.hlaunch("date +%s%N; test $TORCHELASTIC_RESTART_COUNT = 2 || exit 4",
                           "--restart-pause", 2.5, "--restart-on", "4", "--max-restarts", 2,
                           "--restart-window", "24h")
        self.assert_done([run], jobs.OK, 60)
        first, second, third = (int(word) / 1e9 for word in re.findall(r"\b\d{19}\b", run.out))
        self.assertGreaterEqual(second - first, 2.5, str(run))
        self.assertGreaterEqual(third - second, 5, str(run))
        self.assert_said(run, r"restart 1 of 2 within 24 h begins in 2.5 s \(--restart-pause\)",
                         r"restart 2 of 2 within 24 h begins in 5 s \(--restart-pause\)",
                         r"waiting \d s for the pause of 5 s before restart 2 of 2")


class WorkerIsStuck(jobs.JobTest):
    """Processes of a frozen cgroup behave as on a hung file system: no signal ends them."""

    count = 1

    def setUp(self):
        freezer = pathlib.Path("/sys/fs/cgroup/freezer")
        self.group = freezer / f"hlaunch-test-{os.getpid()}"
        try:
            self.group.mkdir()
        except OSError as error:
            self.skipTest(f"no freezer cgroup can be made here: {error}")
        self.addCleanup(self.group.rmdir)
        super().setUp()
        self.addCleanup(self.thaw)  # It runs before the lab ends the frozen process.

    def thaw(self):
        self.write("freezer.state", "THAWED")
        lab.poll(lambda: not (self.group / "cgroup.procs").read_text(encoding="ascii"), 10)

    def write(self, file, text):
        (self.group / file).write_text(str(text), encoding="ascii")

    def test_it_is_named_and_not_waited_for(self):
        runs = self.start(jobs.WORKER, "env", "await", "frozen", "fail", "1", "7", "0", "sleep", "600",
                          options=OPTIONS)
        stuck = next(facts for facts in self.wait_for_workers(runs, 2) if facts["RANK"] == "0")
        inside = next(pid for pid in lab.descendants(runs[0].pid)
                      if lab.namespace_pid(pid) == int(stuck["pid"]))
        self.write("cgroup.procs", inside)
        self.write("freezer.state", "FROZEN")
        (self.nodes[0].folder / "frozen").touch()
        self.assertEqual(runs[0].wait(30), 7, str(runs[0]))
        self.assert_said(runs[0], rf"cannot end worker {stuck['pid']}: it is stuck in the kernel",
                         r"job failed: rank 1 \(node0, .*exited with code 7")
        self.thaw()
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
