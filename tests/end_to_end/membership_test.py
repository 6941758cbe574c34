#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Which nodes are in a round: spares, late nodes, nodes that cannot reach the master store."""

import os
import signal

import jobs
import lab


def block_master_store(node, master):
    """Adds a firewall as on many clusters: the endpoint's port is open, a random port is not."""
    node.run("iptables", "-A", "OUTPUT", "-p", "tcp", "-d", master.ip, "--dport", "30000:65535",
             "-j", "DROP")


class Members(jobs.JobTest):
    count = 3

    def start_for_two(self, *command, nodes=None, options=()):
        return [node.start(lab.HLAUNCH, "--nnodes", 2, "--rdzv-endpoint", "node0:29400", *options,
                           jobs.WORKER, *command, env={"PYTHON_EXEC": jobs.PYTHON})
                for node in (self.nodes if nodes is None else nodes)]

    def test_a_surplus_node_stands_by_and_ends_with_the_job(self):
        end = self.lab.folder / "end"
        runs = self.start_for_two("env", "await", end, nodes=self.nodes[:2])
        self.wait_for_workers(runs, 2)
        runs += self.start_for_two("env", nodes=self.nodes[2:])
        runs[2].wait_for("stands by as a spare")
        end.touch()
        self.assert_done(runs, jobs.OK, 20)
        self.assertEqual(jobs.environments(runs[2]), [])

    def test_a_spare_takes_the_place_of_a_node_that_dies(self):
        options = ["--max-restarts", "1", "--loss-limit", "6", "--shutdown-timeout", "1"]
        runs = self.start_for_two("env", "finish", "1", "sleep", "600", options=options,
                                  nodes=self.nodes[:2])
        self.wait_for_workers(runs, 2)
        runs += self.start_for_two("env", "finish", "1", "sleep", "600", options=options,
                                   nodes=self.nodes[2:])
        runs[2].wait_for("stands by as a spare")
        self.nodes[1].power_off()
        self.assert_done([runs[0], runs[2]], jobs.OK, 30)
        (spare,) = jobs.environments(runs[2])
        self.assertEqual((spare["RANK"], spare["TORCHELASTIC_RESTART_COUNT"]), ("1", "1"))

    def test_a_node_that_cannot_reach_the_master_is_named_before_workers_start(self):
        block_master_store(self.nodes[1], self.nodes[0])
        runs = self.start_for_two("env", nodes=self.nodes[:2])
        self.assert_done(runs, jobs.PREFLIGHT, 30)
        self.assert_said(runs[0], r"node1: cannot reach the master store at 10\.77\.0\.10:\d+")
        self.assert_said(runs[1], r"waiting .* for the master store at 10\.77\.0\.10:\d+ to answer")
        self.assertEqual(jobs.environments(runs[0]), [])

    def test_a_spare_replaces_a_node_that_cannot_reach_the_master(self):
        block_master_store(self.nodes[1], self.nodes[0])
        self.nodes[2].forget("node0")  # So it runs already, and joins when it may.
        spare_runs = self.start_for_two("env", nodes=self.nodes[2:])
        spare_runs[0].wait_for("cannot resolve 'node0'")
        runs = self.start_for_two("env", nodes=self.nodes[:2]) + spare_runs
        runs[0].wait_for("waiting .* for the other nodes to reach the master store", 5)
        agent = jobs.agent_of(runs[1])  # It must not give up before there is a spare.
        os.kill(agent, signal.SIGSTOP)
        self.nodes[2].know("node0", self.nodes[0].ip)
        runs[2].wait_for("stands by as a spare")
        os.kill(agent, signal.SIGCONT)
        self.assert_done(runs, [jobs.OK, jobs.REFUSED, jobs.OK], 30)
        self.assert_said(runs[1], "excluded: .*cannot reach the master store")
        (spare,) = jobs.environments(runs[2])
        self.assertEqual((spare["RANK"], spare["TORCHELASTIC_RESTART_COUNT"]), ("1", "0"))

    def test_a_node_that_joins_a_running_round_begins_the_next_one_uncharged(self):
        end = self.lab.folder / "end"

        def start(node):  # Both others come within the last call.
            return node.start(lab.HLAUNCH, "--nnodes", "1:3", "--last-call", "5",
                              "--rdzv-endpoint", "node0:29400", jobs.WORKER, "env", "await", end,
                              env={"PYTHON_EXEC": jobs.PYTHON})
        runs = [start(self.nodes[0])]
        self.wait_for_workers(runs, 1)
        for node in self.nodes[1:]:
            node.forget("node0")
        runs += [start(node) for node in self.nodes[1:]]
        for run in runs[1:]:
            run.wait_for("cannot resolve 'node0'")
        for node in self.nodes[1:]:
            node.know("node0", self.nodes[0].ip)
        self.wait_for_workers(runs, 4)
        end.touch()
        self.assert_done(runs, jobs.OK, 30)
        self.assert_said(runs[0], "node1, node2 joined: from 1 to 3 nodes")
        sizes = [(facts["WORLD_SIZE"], facts["TORCHELASTIC_RESTART_COUNT"])
                 for facts in jobs.environments(runs[0])]
        self.assertEqual(sizes, [("1", "0"), ("3", "0")])


if __name__ == "__main__":
    lab.main()
