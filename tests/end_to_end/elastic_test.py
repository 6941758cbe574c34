#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""When a healthy job grows, and what the loss of a node does to it where the user sets options."""

import jobs
import lab

WORKER = str(lab.WORKERS / "elastic_worker.py")
PACKAGE = str(lab.BIN.parent / "python")


class Elastic(jobs.JobTest):
    count = 3

    def begin(self, node, nnodes, *options, words=()):
        return node.start(lab.HLAUNCH, "--nnodes", nnodes, "--last-call", 0, "--rdzv-endpoint",
                          self.endpoint, *options, WORKER, self.lab.folder / "saved", *words,
                          env={"PYTHON_EXEC": jobs.PYTHON, "PYTHONPATH": PACKAGE})

    def wait_for_status(self, words):
        def told():
            return self.nodes[0].run(lab.HLAUNCH, "status", "--rdzv-endpoint",
                                     self.endpoint).out
        self.assertTrue(lab.poll(lambda: words in told(), 20), told())

    def save(self):
        (self.lab.folder / "saved").touch()

    def test_a_round_grows_where_the_script_says_so_and_not_before(self):
        runs = [self.begin(self.nodes[0], "1:2")]
        runs[0].wait_for("rank 0 of 1 begins, told: True")
        runs.append(self.begin(self.nodes[1], "1:2"))
        self.wait_for_status("from 1 to 2 nodes with the next round, at the next checkpoint")
        self.assertNotIn("rank 0 of 2", runs[0].out)
        self.save()
        self.assert_done(runs, jobs.OK, 30)
        self.assertIn("rank 0 of 2 begins, told: True", runs[0].out)
        self.assertIn("rank 1 of 2 begins, told: False", runs[1].out)

    def test_a_round_stays_as_it_is_if_the_user_wants_that(self):
        runs = [self.begin(self.nodes[0], "1:2", "--on-join", "ignore", words=["ends"])]
        runs[0].wait_for("rank 0 of 1 begins")
        runs.append(self.begin(self.nodes[1], "1:2", "--on-join", "ignore"))
        runs[1].wait_for("waits until it ends .--on-join ignore")
        self.save()
        self.assert_done(runs, jobs.OK, 30)
        self.assertNotIn("begins", runs[1].out)

    def test_an_odd_node_waits_and_a_loss_ends_the_job_if_the_user_wants_that(self):
        options = ["--node-multiple", 2, "--on-loss", "fail", "--max-restarts", 3]
        runs = [self.begin(node, "2:4", *options) for node in self.nodes[:2]]
        for run in runs:
            run.wait_for("of 2 begins")
        runs.append(self.begin(self.nodes[2], "2:4", *options))
        self.wait_for_status("the next round would have 4 nodes, which takes 1 more")
        runs[1].signal(15)
        self.assert_done(runs, [jobs.NODE_STOPPED, 143, jobs.NODE_STOPPED], 30)
        self.assert_said(runs[0], r"node1 was stopped by .*the job ends for that \(--on-loss fail")
        self.assertNotIn("begins", runs[2].out)


if __name__ == "__main__":
    lab.main()
