#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Nodes stand still and go on, and links go down and up. Whoever stood still itself asks before it
ends its workers, and whoever has ended is neither waited for nor taken for alive."""

import contextlib
import os
import signal
import time

import jobs
import lab

LOSS_LIMIT = 6
GIVEN_UP = 13  # The loss limit and the margin.
SERVICE = "10.77.0.99"  # Leads to node rank 0, as a service of Kubernetes does.


class OfThree(jobs.JobTest):
    """The nodes of a job with restarts keep its record."""

    count = 3
    restarts = 2
    least = 2
    behind_service = False

    def start(self, nodes):
        self.folder = self.lab.folder / "end"
        return [node.start(lab.HLAUNCH, "--nnodes", f"{self.least}:{self.count}", "--rdzv-endpoint",
                           self.endpoint, "--loss-limit", LOSS_LIMIT, "--last-call", 3,
                           "--max-restarts", self.restarts, "--shutdown-timeout", 1, "--verbose",
                           *(["--node-rank", node.index] if self.behind_service else []),
                           jobs.WORKER, "env", "await", self.folder,
                           env={"PYTHON_EXEC": jobs.PYTHON})
                for node in nodes]

    def begin(self):
        if self.behind_service:
            self.endpoint = f"{SERVICE}:29400"
            for node in self.nodes:
                node.run("iptables", "-t", "nat", "-A", "OUTPUT", "-p", "tcp", "-d", SERVICE, "-j",
                         "DNAT", "--to-destination", self.nodes[0].ip)
        runs = self.start(self.nodes)
        self.wait_for_workers(runs, self.count)
        if self.restarts:
            runs[0].wait_for(f"becomes a voter, one of {self.count}\\n", 30)
        time.sleep(2)  # Until the others count as voters.
        return runs

    def stand_still(self, runs, seconds):
        stopped = [[run.pid, *run.descendants()] for run in runs]
        self.send(signal.SIGSTOP, [pid for pids in stopped for pid in pids])
        time.sleep(seconds)
        # nsenter has stopped itself with its child.
        self.send(signal.SIGCONT, [pid for pids in stopped for pid in reversed(pids)])
        self.send(signal.SIGCONT, [run.process.pid for run in runs])

    @staticmethod
    def send(number, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # A health check that ended.
                os.kill(pid, number)

    def end(self, runs, codes=jobs.OK):
        self.folder.touch()
        self.assert_done(runs, codes, 30)

    def assert_undisturbed(self, runs):
        self.end(runs)
        self.assertEqual([len(jobs.environments(run)) for run in runs], [1] * len(runs),
                         self.told(runs))


class StandStill(OfThree):
    def test_a_host_that_comes_back_before_its_place_is_given_away_goes_on(self):
        runs = self.begin()
        self.stand_still(runs[:1], LOSS_LIMIT + 3)
        runs[0].wait_for("which held the rendezvous, does not answer", 20)  # It has met the leader.
        time.sleep(LOSS_LIMIT)
        self.assert_undisturbed(runs)

    def test_a_node_is_named_after_the_lease_and_when_it_is_heard_again(self):
        runs = self.begin()
        self.stand_still(runs[2:], 4)
        for run in runs[:2]:
            run.wait_for("node2 has not been heard of for 2 s; it is given up after 13 s", 10)
        for run in runs:
            run.wait_for(r"node2 is heard of again after \d+ s", 10)
        self.assert_undisturbed(runs)

    def test_all_nodes_at_once_go_on(self):
        runs = self.begin()
        self.stand_still(runs, 20)
        time.sleep(LOSS_LIMIT)  # Whatever follows has begun.
        self.assert_undisturbed(runs)

    def test_the_others_go_on_and_the_one_that_was_alone_is_not_waited_for(self):
        runs = self.begin()
        self.stand_still(runs[1:], LOSS_LIMIT + 3)
        went_on = time.monotonic()
        self.wait_for_workers(runs[1:], 4, 20)  # Those of a second round.
        self.assertLess(time.monotonic() - went_on, GIVEN_UP, self.told(runs))
        self.end(runs, [jobs.RENDEZVOUS_LOST, jobs.OK, jobs.OK])


class HostStartedAgain(OfThree):
    def test_it_does_not_say_that_no_other_node_has_come(self):
        runs = self.begin()
        pids = [runs[0].pid, *runs[0].descendants()]
        self.send(signal.SIGSTOP, pids)
        self.send(signal.SIGKILL, pids)
        self.send(signal.SIGCONT, [runs[0].process.pid])
        runs[1].wait_for("which held the rendezvous, does not answer", 20)
        runs[0] = self.start([self.nodes[0]])[0]
        self.wait_for_workers(runs, 5, 40)  # Two of the first round are counted, too.
        time.sleep(12)
        self.assertNotIn("no other node has come", runs[0].err)
        self.end(runs)


class StandStillWithoutRestarts(OfThree):
    restarts = 0
    least = 3

    def test_all_nodes_at_once_go_on(self):
        runs = self.begin()
        self.stand_still(runs, 20)
        time.sleep(LOSS_LIMIT)
        self.assert_undisturbed(runs)


class LinkFlaps(OfThree):
    def test_of_the_host_ends_no_node(self):
        runs = self.begin()
        for _ in range(8):
            self.nodes[0].cut()
            time.sleep(1.9)
            self.nodes[0].heal()
            time.sleep(1.9)
        self.end(runs)
        for run in runs[1:]:
            self.assertEqual(len(jobs.environments(run)), 1, self.told(runs))


class LinkFlapsBehindService(LinkFlaps):
    behind_service = True


class DiesWhileCutOff(OfThree):
    """What a kernel sends for a dead process once the link is back is no sign of life."""

    count = 2
    restarts = 0
    least = 2

    def test_it_is_lost_as_if_the_link_had_stayed_down(self):
        runs = self.begin()
        self.nodes[1].cut()
        cut = time.monotonic()
        time.sleep(1)
        self.send(signal.SIGSTOP, [runs[1].pid, *runs[1].descendants()])
        self.send(signal.SIGKILL, [runs[1].pid, *runs[1].descendants()])
        self.send(signal.SIGCONT, [runs[1].process.pid])  # nsenter has stopped itself.
        time.sleep(cut + 9 - time.monotonic())
        self.nodes[1].heal()
        runs[0].wait_for("was not heard of for 13 s", 30)
        self.assertLess(time.monotonic() - cut, GIVEN_UP + 4, self.told(runs))
        self.assertNotIn("heard of again", runs[0].err)
        self.assert_done(runs[:1], jobs.NODE_LOST, 20)
        runs[1].wait(10)


class AgentOfHostOfTwo(OfThree):
    """One of two cannot lead without proof that the other one is dead."""

    count = 2
    least = 1

    def test_its_keeper_proves_its_death_in_time(self):
        runs = self.begin()
        os.kill(jobs.agent_of(runs[0]), signal.SIGSTOP)
        self.wait_for_workers(runs[1:], 2, 30)
        self.end(runs, [jobs.AGENT_LOST, jobs.OK])


class AgentOfHostOfTwoBehindService(AgentOfHostOfTwo):
    behind_service = True


if __name__ == "__main__":
    lab.main()
