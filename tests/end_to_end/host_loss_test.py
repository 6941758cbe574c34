#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The node that hosts the rendezvous dies, stands still or restarts, and the job goes on: with
--on-host-loss the agents of the job keep its record."""

import contextlib
import os
import re
import signal
import time
import unittest

import jobs
import lab

LEADS = r"node0, which held the rendezvous, does not answer; node[12] leads it since"
# Until a node that is to be a voter counts as one: messages and a beat. Nothing says so.
VOTER_TIME = 5
# A program that takes connections at the endpoint's port and never answers.
HOLD_PORT = """
import socket, time
server = socket.create_server(("", 29400))
print("holds the port", flush=True)
time.sleep(600)
"""


def kill_all(run):
    """Kills all processes of a node at once: none sees another one die and can report it."""
    below = run.descendants()
    for number, pids in ((signal.SIGSTOP, below), (signal.SIGKILL, [run.pid, *below])):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


class HostLossTest(jobs.JobTest):
    least = 2
    # An agent gives up after this time. By then there must be a new leader, and in a group of two a
    # proof of death counts for 0.45 of it, though threads stand still for seconds.
    loss_limit = 30
    on_host_loss = "wait"
    shutdown_timeout = 1
    worker_words = ()
    env = {}

    def options_of(self, _):
        """Further options of a node."""
        return ()

    def start_job(self, nodes=None):
        end = self.lab.folder / "end"
        # The last call is long enough that all nodes are in the first round.
        return [node.start(
            lab.HLAUNCH, "--nnodes", f"{self.least}:{self.count}", "--rdzv-endpoint", self.endpoint,
            *(["--on-host-loss", self.on_host_loss] if self.on_host_loss else []),
            "--loss-limit", self.loss_limit, "--last-call", 8, "--max-restarts", 50,
            "--shutdown-timeout", self.shutdown_timeout, "--verbose",
            *self.options_of(node), jobs.WORKER, *self.worker_words, "env", "await", end,
            env={"PYTHON_EXEC": jobs.PYTHON, **self.env})
                for node in nodes or self.nodes]

    def begin(self):
        runs = self.start_job()
        self.wait_for_workers(runs, self.count)
        self.await_voters(runs, min(self.count, 3))
        return runs

    def await_voters(self, runs, number):
        """Waits until `number` nodes keep the record, as the leader says, and the others know of
        all that may."""
        runs[0].wait_for(f"becomes a voter, one of {number}\\n", 30)
        for run in runs[1:]:
            run.wait_for(f"this node knows of {len(runs)} voters", 30)
        time.sleep(VOTER_TIME)

    def end(self, runs, codes=jobs.OK, timeout=20):
        (self.lab.folder / "end").touch()
        self.assert_done(runs, codes, timeout)

    def lose_host_of_three(self, runs):
        kill_all(runs[0])
        facts = self.wait_for_workers(runs[1:], 4, 60)[-2:]
        for run in runs[1:]:
            self.assert_said(run, LEADS)
        last = [jobs.environments(run)[-1] for run in runs[1:]]
        self.assertEqual(sorted(f["RANK"] for f in last), ["0", "1"], facts)
        self.assertEqual({f["WORLD_SIZE"] for f in last}, {"2"}, facts)
        for node in self.nodes[1:]:  # Without an endpoint: nothing answers at the job's own.
            told = node.run(lab.HLAUNCH, "why")
            self.assertRegex(told.out, "^job .*, round 2: 2 workers", self.told([told, *runs]))
        self.end(runs[1:])


class HostDies(HostLossTest):
    """A job that may restart outlives the host of its rendezvous though nobody asked for that."""

    count = 3
    on_host_loss = None

    def test_of_three(self):
        runs = self.begin()
        self.lose_host_of_three(runs)


class HostDiesAtOnce(HostLossTest):
    """The host dies in the first moments of the first round."""

    count = 3
    on_host_loss = None
    loss_limit = 8

    def test_of_three(self):
        runs = self.start_job()
        self.wait_for_workers(runs, self.count)
        self.lose_host_of_three(runs)

    def test_without_voters_the_others_join_it_once_it_is_started_again(self):
        # It reaches no other node, so none becomes a voter.
        self.nodes[0].run("iptables", "-A", "OUTPUT", "-p", "tcp", "--syn", "!", "-o", "lo", "-j", "DROP")
        runs = self.start_job()
        self.wait_for_workers(runs, self.count)
        kill_all(runs[0])
        runs[0] = self.start_job([self.nodes[0]])[0]
        for run in runs[1:]:
            run.wait_for("joining the new rendezvous, which counts as restart 1 of 50", 60)
        self.assertTrue(lab.poll(lambda: jobs.environments(runs[0]), 60), self.told(runs))
        self.end(runs, timeout=60)


class HostDiesBeforeTheFirstRound(HostLossTest):
    """Nothing is lost then. The others wait as they did before it came, beyond the loss limit."""

    count = least = 3
    on_host_loss = None
    loss_limit = 3

    def test_the_others_wait_for_it(self):
        runs = self.start_job(self.nodes[:2])
        runs[1].wait_for("waiting .* for 1 of 3 nodes", 30)
        kill_all(runs[0])
        runs[1].wait_for("no round had begun, so this node waits", 30)
        runs[0] = self.start_job(self.nodes[:1])[0]
        runs += self.start_job(self.nodes[2:])
        for facts in self.wait_for_workers(runs, 3, 60):
            self.assertEqual(facts["WORLD_SIZE"], "3", self.told(runs))
            self.assertEqual(facts["TORCHELASTIC_RESTART_COUNT"], "0", self.told(runs))
        self.end(runs)


class HostIsStartedAgainAtOnce(HostLossTest):
    """The keeper of the host is killed, and hlaunch is started again while the agent that it leaves
    still has the endpoint's port."""

    count = 3
    on_host_loss = None
    shutdown_timeout = 3
    worker_words = ("stubborn",)

    def test_others_still_find_the_job_at_the_endpoint(self):
        runs = self.begin()
        os.kill(runs[0].pid, signal.SIGKILL)
        runs[0] = self.start_job([self.nodes[0]])[0]
        self.wait_for_workers(runs[:1], 1, 60)
        self.assert_said(runs[0], "listens there; asking who that is")
        kill_all(runs[2])
        runs[2] = self.start_job([self.nodes[2]])[0]  # It knows the endpoint only.
        self.wait_for_workers(runs[2:], 1, 60)
        self.end(runs)


class NoOtherVoter(HostLossTest):
    """The endpoint's port is open, and no other port of the other nodes."""

    on_host_loss = None

    def test_is_told_at_the_start(self):
        self.nodes[0].run("iptables", "-A", "OUTPUT", "-p", "tcp", "-d", self.nodes[1].ip, "--syn",
                          "-j", "DROP")
        runs = self.start_job()
        self.wait_for_workers(runs, self.count)
        for run in runs:
            run.wait_for(r"the job ends if node0 dies, as with --on-host-loss end: no other node answers "
                         r"as a voter \(node1 at 10\.77\.0\.11:\d+ does not\)", 60)
        self.end(runs)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class HostStandsStillAtLength(HostLossTest):
    count = 3

    def test_workers_are_not_touched(self):
        runs = self.begin()
        agent = jobs.agent_of(runs[0])
        os.kill(agent, signal.SIGSTOP)
        for run in runs[1:]:
            run.wait_for(LEADS, 20)
        os.kill(agent, signal.SIGCONT)
        runs[0].wait_for(LEADS, 10)  # The new leader tells it.
        self.end(runs)
        self.assertEqual([len(jobs.environments(run)) for run in runs], [1, 1, 1], self.told(runs))


class OneOfTwo(HostLossTest):
    least = 1

    def test_goes_on_by_proof(self):
        runs = self.begin()
        os.kill(jobs.agent_of(runs[0]), signal.SIGKILL)
        self.wait_for_workers(runs[1:], 2, 20)
        self.assert_said(runs[1], LEADS + ".* is dead")
        self.end(runs, [jobs.AGENT_LOST, jobs.OK])

    def test_goes_on_if_the_keeper_is_killed(self):
        runs = self.begin()
        os.kill(runs[0].pid, signal.SIGKILL)
        self.wait_for_workers(runs[1:], 2, 20)
        self.assert_said(runs[1], LEADS + ".* is dead")
        self.end(runs[1:])

    def test_ends_without(self):
        self.loss_limit = 6  # It waits for the end of that.
        runs = self.begin()
        kill_all(runs[0])
        runs[1].wait_for(r"ending in \d+ s: until then workers of nodes that are cut off", 20)
        runs[1].signal(signal.SIGTERM)
        self.assertEqual(runs[1].wait(5), jobs.RENDEZVOUS_LOST, self.told(runs))
        self.assert_said(runs[1], "one of two cannot tell whether the other one is dead")
        self.assert_nothing_left()


class HostThatHadToWaitForItsPort(HostLossTest):
    """Another program has the endpoint's port at first where the host is started again, so its
    rendezvous begins late, and apart from the voter that this node becomes."""

    least = 1

    def test_leads_later_and_is_found_there(self):
        runs = self.begin()
        os.kill(jobs.agent_of(runs[0]), signal.SIGKILL)
        self.assertEqual(runs[0].wait(20), jobs.AGENT_LOST, self.told(runs))
        other = self.nodes[0].start(jobs.PYTHON, "-c", HOLD_PORT)
        other.wait_for("holds the port")
        runs[0] = self.start_job([self.nodes[0]])[0]
        runs[0].wait_for("asking who that is")
        other.signal(signal.SIGKILL)
        self.wait_for_workers(runs[:1], 1, 60)
        runs[0].wait_for("this node knows of 2 voters", 30)
        runs[1].wait_for("node0 becomes a voter, one of 2", 30)
        time.sleep(VOTER_TIME)
        os.kill(jobs.agent_of(runs[1]), signal.SIGKILL)
        runs[0].wait_for("node0 leads it since", 20)
        runs[1] = self.start_job([self.nodes[1]])[0]  # It knows the endpoint only.
        self.wait_for_workers(runs[1:], 1, 60)
        self.assertEqual(jobs.environments(runs[1])[0]["WORLD_SIZE"], "2", self.told(runs))
        self.end(runs)


class OneOfTwoContinues(HostLossTest):
    least = 1
    on_host_loss = "continue"

    def test_after_a_time(self):
        runs = self.begin()
        kill_all(runs[0])
        self.wait_for_workers(runs[1:], 2, 80)
        self.end(runs[1:])


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class EachOfThreeAtLength(HostLossTest):
    """Whichever node dies, and whatever it held, the job goes on without an option given."""

    count = 3
    on_host_loss = None
    loss_limit = 8

    def test_the_others_go_on(self):
        for dying in range(self.count):
            with self.subTest(f"node{dying} of {self.count}"):
                (self.lab.folder / "end").unlink(missing_ok=True)
                runs = self.begin()
                rest = [run for k, run in enumerate(runs) if k != dying]
                began = time.monotonic()
                kill_all(runs[dying])
                self.assertTrue(lab.poll(lambda rest=rest: all(len(jobs.environments(run)) > 1 for run in rest), 60),
                                self.told(runs))
                print(f"node{dying} of {self.count}: the others work again after {time.monotonic() - began:.1f} s")
                worlds = {jobs.environments(run)[-1]["WORLD_SIZE"] for run in rest}
                self.assertEqual(worlds, {str(self.count - 1)}, self.told(runs))
                self.end(rest)


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class EachOfFiveAtLength(EachOfThreeAtLength):
    count = 5


@unittest.skipUnless("HLAUNCH_AT_LENGTH" in os.environ, "HLAUNCH_AT_LENGTH is not set")
class TenHostsAtLength(HostLossTest):
    """Ten hosts die one after the other, and each is started again."""

    count = 4
    loss_limit = 20  # It waits for that ten times.

    def test_the_job_goes_on(self):
        runs = self.begin()
        for i in range(10):
            leader = self.leader(runs)
            kill_all(runs[leader])
            rest = [run for k, run in enumerate(runs) if k != leader]
            before = [len(jobs.environments(run)) for run in rest]
            self.assertTrue(lab.poll(lambda: all(
                len(jobs.environments(run)) > was for run, was in zip(rest, before)), 60),
                f"{i}: {self.told(runs)}")
            runs[leader] = self.start_job([self.nodes[leader]])[0]
            self.assertTrue(lab.poll(lambda: jobs.environments(runs[leader]), 60),
                            f"{i}: {self.told(runs)}")
            time.sleep(2 * VOTER_TIME)
        self.end(runs)

    def leader(self, runs):
        """The node that was reported last as leader, at first node0. The run with the most reports
        counts, since a node that was started again has seen fewer."""
        said = max((re.findall(r"; node(\d) leads it since", run.err) for run in runs), key=len)
        return int(said[-1]) if said else 0


if __name__ == "__main__":
    lab.main()
