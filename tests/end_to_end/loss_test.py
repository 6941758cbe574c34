#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""An agent, a keeper or a whole host is lost: the others stop in time, and no process stays behind.

Every worker has the family of e2e_worker.py: forking data loaders, and a grandchild that left the
session and ignores SIGTERM. A wrapper around the worker has started another process in the
background.
"""

import contextlib
import dataclasses
import os
import signal
import time
import typing

import jobs
import lab

LOSS_LIMIT = 6  # A process may wait for seconds on a busy machine.
WORKERS = ["--no-python", jobs.WRAPPER, "family", "env", "sleep", "600"]
OPTIONS = ["--nproc-per-node", "2", "--loss-limit", str(LOSS_LIMIT), "--shutdown-timeout", "1"]
# A job of so many nodes has a lease of 10 s. Its agents speak at least every 5 s, so one that
# stands still for 3 s is not silent.
LONG_LEASE = ["--spares", "2000"]


@dataclasses.dataclass
class Loss:
    name: str
    strike: typing.Callable  # Called with the test, the node and its run.
    victim: int  # The node that is lost.
    codes: list  # Of node0 and node1; a tuple allows any of its members.
    within: float  # Seconds until all have ended.
    survivor_says: str = ""  # A pattern in the output of the other node.


def kill_agent(_, run):
    os.kill(jobs.agent_of(run), signal.SIGKILL)


def kill_keeper(_, run):
    os.kill(run.pid, signal.SIGKILL)


LOST = (jobs.NODE_LOST, jobs.AGENT_LOST)

LOSSES = [
    Loss("agent killed", kill_agent, 1, [LOST, jobs.AGENT_LOST], 25, "node1"),
    Loss("keeper killed", kill_keeper, 1, [LOST, jobs.KILLED], 25, "node1"),
    Loss("node powered off", lambda node, _: node.power_off(), 1, [jobs.NODE_LOST, jobs.KILLED], 25,
         "node1"),
    Loss("cable cut", lambda node, _: node.cut(), 1,
         [jobs.NODE_LOST, jobs.RENDEZVOUS_LOST], 25, "node1"),
    Loss("black hole", lambda node, _: node.drop(), 1,
         [jobs.NODE_LOST, jobs.RENDEZVOUS_LOST], 25, "node1"),
    Loss("rendezvous' host powered off", lambda node, _: node.power_off(), 0,
         [jobs.KILLED, jobs.RENDEZVOUS_LOST], 15, "node0"),
    Loss("rendezvous' agent killed", kill_agent, 0,
         [jobs.AGENT_LOST, jobs.RENDEZVOUS_LOST], 15, "node0"),
]


class Lost(jobs.JobTest):
    def setUp(self):
        pass  # Each loss needs a new lab, since some cannot be undone.

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


class Silent(jobs.JobTest):
    """Nothing comes from node2 for a while, much shorter than the loss limit."""

    count = 3

    def test_it_is_named_on_every_console_after_the_lease_and_when_it_comes_back(self):
        runs = self.start(jobs.WORKER, "env", "await", "go",
                          options=[*LONG_LEASE, "--loss-limit", "300"])
        self.wait_for_workers(runs, 3)
        self.nodes[2].drop()
        for run in runs[:2]:
            run.wait_for(r"node2 has not been heard of for \d+ s; it is given up after 3\d\d s")
        self.nodes[2].heal()
        for run in runs:
            run.wait_for(r"node2 is heard of again after \d+ s", 20)
        for node in self.nodes:
            (node.folder / "go").touch()
        self.assert_done(runs, jobs.OK, 30)
        self.assertEqual(runs[1].err.count("node2 has not been heard of"), 1, self.told(runs))


class Replaced(jobs.JobTest):
    """The node that hosts the rendezvous dies and is restarted, as Kubernetes does with a pod."""

    def test_the_other_node_joins_it_with_a_restart_left(self):
        end = self.lab.folder / "end"
        words = [jobs.WORKER, "env", "await", end]
        options = ["--max-restarts", 1, "--on-host-loss", "end", "--shutdown-timeout", 1]
        first, other = self.start(*words, options=options)
        old = {facts["NODE_RANK"]: facts["pid"]
               for facts in self.wait_for_workers([first, other], 2)}
        kill_agent(self.nodes[0], first)
        self.assertEqual(first.wait(20), jobs.AGENT_LOST, str(first))
        again = self.start(*words, options=options, nodes=self.nodes[:1])[0]
        facts = self.wait_for_workers([other, again], 3, 40)[1]
        self.assertEqual((facts["NODE_RANK"], facts["WORLD_SIZE"]), ("1", "2"), str(other))
        workers = [pid for pid, words in self.nodes[1].processes().items()
                   if jobs.WORKER in words and "hlaunch" not in words.split()[0]]
        self.assertEqual(len(workers), 1, f"{workers} beside {old}: {other}")
        end.touch()
        for run in (other, again):
            self.assertEqual(run.wait(20), jobs.OK, self.told([other, again]))
        self.assert_said(other, "joining the new rendezvous, which counts as restart 1 of 1")
        self.assert_nothing_left()

    def test_without_one_it_ends(self):
        first, other = self.start(jobs.WORKER, "env", "sleep", 600,
                                  options=["--shutdown-timeout", 1])
        self.wait_for_workers([first, other], 2)
        kill_agent(self.nodes[0], first)
        self.assertEqual(first.wait(20), jobs.AGENT_LOST, str(first))
        again = self.start(jobs.WORKER, "env", "sleep", 600, nodes=self.nodes[:1])[0]
        self.assertEqual(other.wait(40), jobs.NODE_LOST, self.told([other, again]))
        again.signal(signal.SIGTERM)
        self.assert_done([again], 128 + signal.SIGTERM, 20)


class Alone(jobs.JobTest):
    def test_a_host_whose_round_runs_does_not_say_that_no_other_node_has_come(self):
        run = self.nodes[0].start(lab.HLAUNCH, "--nnodes", "1:2", "--rdzv-endpoint", "node0:29400",
                                  "--rdzv-conf", "last_call_timeout=0", "--join-timeout", "1",
                                  jobs.WORKER, "env", "await", "go",
                                  env={"PYTHON_EXEC": jobs.PYTHON})
        self.wait_for_workers([run], 1)
        # A host reports what it believes after half the join time-out, and a node that comes later
        # reports nothing before it has waited for a second. There are 5 s between the other's
        # report and its end, so it has time for both.
        other = self.nodes[1].start(lab.HLAUNCH, "--nnodes", "1:2", "--rdzv-endpoint",
                                    "node9:29400", "--join-timeout", "10", "--no-python", "true")
        other.wait_for("nobody answers at node9:29400")
        (self.nodes[0].folder / "go").touch()
        self.assertEqual(run.wait(20), jobs.OK, str(run))
        self.assertNotIn("no other node has come", run.err)
        self.assertEqual(other.wait(20), jobs.BAD_ENDPOINT, str(other))
        self.assert_nothing_left()


class LostOnOneNode(jobs.JobTest):
    count = 1

    def test_agent_and_keeper(self):
        for name, strike, code in (("agent", kill_agent, jobs.AGENT_LOST),
                                   ("keeper", kill_keeper, jobs.KILLED)):
            with self.subTest(name):
                runs = self.start(*WORKERS, options=OPTIONS)
                self.wait_for_workers(runs, 2)
                strike(self.nodes[0], runs[0])
                self.assert_done(runs, code, 10)


class Frozen(jobs.JobTest):
    """An agent stands still while its round begins, and for longer than the loss limit. When it
    goes on, the messages in its socket are old."""

    count = 3

    def test_it_starts_no_worker_when_it_goes_on(self):
        # An agent that stands still for the lease counts as absent, and no round begins. So the
        # third node runs already, and joins as soon as it knows where.
        options = [*OPTIONS, *LONG_LEASE, "--loss-limit", "15", "--preflight", "off"]
        self.nodes[2].forget("node0")
        runs = self.start(jobs.WORKER, "env", "sleep", "600", options=options)
        for run in runs[:2]:
            run.wait_for("for 1 of 3 nodes; here: node0, node1", 20)
        runs[2].wait_for("cannot resolve 'node0'")
        agent = jobs.agent_of(runs[1])
        os.kill(agent, signal.SIGSTOP)
        self.nodes[2].know("node0", self.nodes[0].ip)
        self.wait_for_workers([runs[0], runs[2]], 4)
        for run in (runs[0], runs[2]):
            self.assertEqual(run.wait(40), jobs.NODE_LOST, self.told(runs))
        os.kill(agent, signal.SIGCONT)
        self.assert_done(runs, [jobs.NODE_LOST, LOST + (jobs.RENDEZVOUS_LOST,), jobs.NODE_LOST], 25)
        self.assertEqual(jobs.environments(runs[1]), [], str(runs[1]))


class Paused(jobs.JobTest):
    """All processes of a node stand still, as in a paused virtual machine, for a time around that
    after which its agent ends its workers, and go on."""

    count = 3

    def test_the_job_goes_on(self):
        for seconds in (LOSS_LIMIT + 1, LOSS_LIMIT + 3, LOSS_LIMIT + 4.5):
            end = self.lab.folder / f"end-{seconds}"
            runs = self.start(jobs.WORKER, "env", "await", end,
                              options=["--loss-limit", LOSS_LIMIT, "--max-restarts", 5])
            self.wait_for_workers(runs, 3)
            stopped = [runs[2].pid, *runs[2].descendants()]
            self.send(signal.SIGSTOP, stopped)
            time.sleep(seconds)
            # nsenter has stopped itself with its child.
            self.send(signal.SIGCONT, [*reversed(stopped), runs[2].process.pid])
            time.sleep(LOSS_LIMIT)  # Whatever follows from the pause has begun.
            end.touch()
            self.assert_done(runs, jobs.OK, 60)

    @staticmethod
    def send(number, pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # A health check that ended.
                os.kill(pid, number)


if __name__ == "__main__":
    lab.main()
