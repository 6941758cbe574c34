#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Two services that share an etcd of three members on node0: one leads, the other takes over when it
is killed or stands still; a job on two more nodes goes on to its next round, and no round runs twice.
"""

import json
import os
import pathlib
import signal
import unittest

import jobs
import lab

SERVICE = str(lab.BIN / "hlaunch-rendezvous")
ETCD = "/usr/bin/etcd"
MEMBERS = ("e0", "e1", "e2")


@unittest.skipUnless(pathlib.Path(ETCD).exists(), "etcd is not installed")
class StandbyTest(jobs.JobTest):
    count = 4

    def setUp(self):
        super().setUp()
        self.etcd = [self.start_member(i) for i in range(len(MEMBERS))]

    def url(self, i, kind):
        return f"http://{self.nodes[0].ip}:{23790 + 100 * kind + i}"

    def start_member(self, i):
        folder = self.nodes[0].folder / MEMBERS[i]
        cluster = ",".join(f"{name}={self.url(k, 1)}" for k, name in enumerate(MEMBERS))
        return self.nodes[0].start(
            ETCD, "--name", MEMBERS[i], "--data-dir", folder, "--listen-client-urls", self.url(i, 0),
            "--advertise-client-urls", self.url(i, 0), "--listen-peer-urls", self.url(i, 1),
            "--initial-advertise-peer-urls", self.url(i, 1), "--initial-cluster", cluster,
            "--unsafe-no-fsync", "--log-level", "error")

    def serve(self, node, port=29400):
        members = ",".join(self.url(i, 0).removeprefix("http://") for i in range(len(MEMBERS)))
        run = self.nodes[node].start(SERVICE, "--listen", port, "--state", f"etcd://{members}/lab")
        run.wait_for(r"listening on \[::\]:")
        return run

    def leader_and_standby(self):
        leader = self.serve(0)
        leader.wait_for("this service leads; 0 jobs restored from etcd at ", 60)
        standby = self.serve(1)
        standby.wait_for("this service stands by; node0:29400 leads")
        return leader, standby

    def job(self):
        return [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node1,node0", "--rdzv-id",
                           "a", "--max-restarts", 2, "--shutdown-timeout", 2, jobs.WORKER, "env",
                           "sleep", 600, env={"PYTHON_EXEC": jobs.PYTHON})
                for node in self.nodes[2:]]

    def fail_a_worker(self, runs):
        """Both workers are in the next round after that."""
        seen = len(jobs.environments(runs[0])) + len(jobs.environments(runs[1]))
        os.kill(jobs.environments(runs[1])[-1]["pid"], signal.SIGKILL)
        facts = self.wait_for_workers(runs, seen + 2, 60)
        counts = sorted(fact["TORCHELASTIC_RESTART_COUNT"] for fact in facts)
        self.assertEqual(len(counts), 2 * len(set(counts)), self.told(runs))  # Each round once.

    def end_job(self, runs):
        for run in runs:
            run.signal(signal.SIGTERM)
        for run in runs:
            self.assertIn(run.wait(30), (143, jobs.NODE_STOPPED), self.told(runs))

    def kill(self, run):
        os.kill(run.pid, signal.SIGKILL)
        run.wait(5)


class TakenOver(StandbyTest):
    def test_from_one_that_is_killed(self):
        leader, standby = self.leader_and_standby()
        runs = self.job()
        self.wait_for_workers(runs, 2, 60)
        self.fail_a_worker(runs)
        self.kill(leader)
        standby.wait_for("this service leads; 1 job restored from etcd at ", 60)
        self.fail_a_worker(runs)
        self.end_job(runs)

    def test_from_one_that_stands_still_and_comes_back(self):
        leader, standby = self.leader_and_standby()
        runs = self.job()
        self.wait_for_workers(runs, 2, 60)
        os.kill(leader.pid, signal.SIGSTOP)
        standby.wait_for("this service leads; 1 job restored from etcd at ", 60)
        os.kill(leader.pid, signal.SIGCONT)
        leader.process.send_signal(signal.SIGCONT)  # nsenter stops with its child.
        leader.wait_for("this service has lost its lease in etcd at .*: it decides nothing more", 30)
        leader.wait_for("this service stands by; node1:29400 leads", 30)
        self.fail_a_worker(runs)
        self.end_job(runs)

    def test_the_leader_of_etcd_is_killed(self):
        leader, _ = self.leader_and_standby()
        runs = self.job()
        self.wait_for_workers(runs, 2, 60)
        asked = self.nodes[0].run("etcdctl", "--endpoints",
                                  ",".join(self.url(i, 0) for i in range(len(MEMBERS))),
                                  "endpoint", "status", "-w", "json", env={"ETCDCTL_API": "3"})
        for i, status in enumerate(json.loads(asked.out)):
            if status["Status"]["leader"] == status["Status"]["header"]["member_id"]:
                self.kill(self.etcd[i])
        self.fail_a_worker(runs)
        self.assertNotIn("lost its lease", str(leader))
        self.end_job(runs)


if __name__ == "__main__":
    lab.main()
