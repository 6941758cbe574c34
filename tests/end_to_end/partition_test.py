#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The path from node2 to the other workers' hosts is cut; all reach the rendezvous on node0."""

import health_test
import jobs
import lab

SERVICE = str(lab.BIN / "hlaunch-rendezvous")


class Cut(jobs.JobTest):
    count = 4

    def setUp(self):
        super().setUp()
        for node in self.nodes:
            health_test.describe(node)
            self.lose_links(node, 0)

    @staticmethod
    def lose_links(node, count):
        health_test.put(node.folder / "machine" / health_test.PORT / "counters/link_downed",
                        str(count))

    def wait_for_turns(self, firsts):
        """Waits until each job's first node has reported losses of other nodes, which it gets once
        all nodes have reported."""
        for count in range(1, 100):  # Losses before a node's first check are not reported.
            for node in self.nodes[2:]:
                self.lose_links(node, count)
            if lab.poll(lambda: all(run.err.count(f"{other}: link losses: ") >= 2
                                    for run, other in firsts), 0.2):
                return
        self.fail(self.told([run for run, _ in firsts]))

    def job(self, name, nodes, *options):
        return [self.nodes[i].start(
            lab.HLAUNCH, "--rdzv-endpoint", "node0:29400", "--rdzv-id", name,
            "--sysroot", self.nodes[i].folder / "machine", "--health-interval", 0.5, "--last-call",
            15, *options, jobs.WORKER, "env", "await", self.lab.folder / name,
            env={"PYTHON_EXEC": jobs.PYTHON}) for i in nodes]

    def cut(self, node, others):
        for other in others:
            for chain, end in (("INPUT", "-s"), ("OUTPUT", "-d")):
                node.run("iptables", "-A", chain, end, other.ip, "-j", "DROP")

    def test_the_smaller_side_is_excluded_and_of_two_nodes_the_way_is_named(self):
        service = self.nodes[0].start(SERVICE, "--listen", 29400)
        service.wait_for(r"listening on \[::\]:")
        three = self.job("three", (1, 2, 3), "--nnodes", "2:3", "--max-restarts", 1)
        two = self.job("two", (2, 3), "--nnodes", 2, "--max-restarts", 1)
        ends = self.job("ends", (1, 2), "--nnodes", 2, "--on-partition", "fail")
        for runs, count in ((three, 3), (two, 2), (ends, 2)):
            self.wait_for_workers(runs, count)
        self.wait_for_turns([(three[0], "node2"), (three[0], "node3"), (two[0], "node3"),
                             (ends[0], "node2")])
        self.cut(self.nodes[2], (self.nodes[1], self.nodes[3]))
        for run in ends:
            self.assertEqual(run.wait(40), jobs.NODE_LOST, str(run))
            self.assert_said(run, "node1 and node2 do not reach each other, though all reach")
        self.assertEqual(three[1].wait(40), jobs.REFUSED, str(three[1]))
        self.assert_said(three[1], "this node was excluded: node2 is cut off from node1, node3")
        self.wait_for_workers([three[0], three[2]], 4)
        for run in three:
            self.assert_said(run, r"node2 \(10.77.0.12\) was lost: it is cut off from node1, "
                             "node3, though all reach the rendezvous; .*restart 1 of 1")
        for run in two:
            run.wait_for("node2 and node3 do not reach each other, .* nobody is excluded", 40)
        for name in ("three", "two"):
            (self.lab.folder / name).touch()
        for run in two + [three[0], three[2]]:
            self.assertEqual(run.wait(20), jobs.OK, str(run))
        world = [facts["WORLD_SIZE"] for run in three for facts in jobs.environments(run)]
        self.assertEqual(sorted(world), ["2", "2", "3", "3", "3"])
        service.signal(15)
        service.wait(10)
        self.assert_nothing_left()


if __name__ == "__main__":
    lab.main()
