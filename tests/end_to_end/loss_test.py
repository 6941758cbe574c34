#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An agent, a keeper or a whole host is lost: the others stop in time, and nobody stays behind.

Every worker has the family of e2e_worker.py: forking data loaders, and a grandchild that left the
session and ignores SIGTERM; a wrapper around it has put another one aside.
"""

import dataclasses
import os
import signal
import typing

import jobs
import lab

LOSS_LIMIT = 3
WORKERS = ["--no-python", jobs.WRAPPER, "family", "env", "sleep", "600"]
OPTIONS = ["--nproc-per-node", "2", "--loss-limit", str(LOSS_LIMIT), "--shutdown-timeout", "1"]


@dataclasses.dataclass
class Loss:
    name: str
    strike: typing.Callable  # (test, node, its run)
    victim: int  # The node that is struck.
    codes: list  # Of node0 and node1; a tuple allows any of its members.
    within: float  # Seconds until all have ended.
    survivor_says: str = ""  # What the hlaunch that was not struck says.


def kill_agent(_, run):
    os.kill(jobs.agent_of(run), signal.SIGKILL)


def kill_keeper(_, run):
    os.kill(run.pid, signal.SIGKILL)


KILLED = 128 + signal.SIGKILL
LOST = (jobs.NODE_LOST, jobs.AGENT_LOST)

LOSSES = [
    Loss("agent killed", kill_agent, 1, [LOST, jobs.AGENT_LOST], 25, "node1"),
    Loss("keeper killed", kill_keeper, 1, [LOST, KILLED], 25, "node1"),
    Loss("node powered off", lambda node, _: node.power_off(), 1, [jobs.NODE_LOST, KILLED], 25,
         "node1"),
    Loss("cable cut", lambda node, _: node.cut(), 1,
         [jobs.NODE_LOST, jobs.RENDEZVOUS_LOST], 25, "node1"),
    Loss("black hole", lambda node, _: node.drop(), 1,
         [jobs.NODE_LOST, jobs.RENDEZVOUS_LOST], 25, "node1"),
    Loss("rendezvous' host powered off", lambda node, _: node.power_off(), 0,
         [KILLED, jobs.RENDEZVOUS_LOST], 15, "node0"),
    Loss("rendezvous' agent killed", kill_agent, 0,
         [jobs.AGENT_LOST, jobs.RENDEZVOUS_LOST], 15, "node0"),
]


class Lost(jobs.JobTest):
    def setUp(self):
        pass  # A lab per loss: some are not to be healed.

    def test_losses(self):
        for loss in LOSSES:
            with self.subTest(loss.name):
                super().setUp()
                runs = self.start(*WORKERS, options=OPTIONS)
                self.wait_for_workers(runs, 4)
                loss.strike(self.nodes[loss.victim], runs[loss.victim])
                self.assert_done(runs, loss.codes, loss.within)
                self.assert_said(runs[1 - loss.victim], loss.survivor_says)
                self.lab.close()


class LostOnOneNode(jobs.JobTest):
    count = 1

    def test_agent_and_keeper(self):
        for name, strike, code in (("agent", kill_agent, jobs.AGENT_LOST),
                                   ("keeper", kill_keeper, KILLED)):
            with self.subTest(name):
                runs = self.start(*WORKERS, options=OPTIONS)
                self.wait_for_workers(runs, 2)
                strike(self.nodes[0], runs[0])
                self.assert_done(runs, code, 10)


if __name__ == "__main__":
    lab.main()
