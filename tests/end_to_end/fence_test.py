#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""There are never two rounds at once, even if hlaunch's own processes stand still on a node whose
workers go on. The workers themselves record when they lived."""

import contextlib
import os
import pathlib
import signal
import time

import jobs
import lab

LOSS_LIMIT, MARGIN = 6, 6  # A process may wait for seconds on a busy machine.
# With this one an agent that stands still loses its workers 6 s before its place is given away,
# and not 4 s: its keeper has to start a program that reports its death in time.
LONG_LOSS_LIMIT = 12
WORKER = str(lab.WORKERS / "e2e_rounds_worker.py")
OPTIONS = ["--nproc-per-node", 2, "--loss-limit", LOSS_LIMIT, "--shutdown-timeout", 1,
           "--max-restarts", 3, "--last-call", 1, "--preflight", "off"]


class StandsStillOfTwo(jobs.JobTest):
    count = 2

    def start_all(self, *options):
        """Starts the job on all nodes and waits until all workers run."""
        self.folder = pathlib.Path(self.lab.folder) / "lives"
        self.folder.mkdir()
        least = max(1, self.count - 1)
        runs = [node.start(lab.HLAUNCH, "--nnodes", f"{least}:{self.count}", "--rdzv-endpoint",
                           self.endpoint, *OPTIONS, *options, "--no-python", WORKER, self.folder,
                           node.name)
                for node in self.nodes]
        if not lab.poll(lambda: self.living(2 * self.count, runs), 20):
            self.fail(f"not all workers came: {self.told(runs)}")
        # A node that starts much later than the others joins a round that runs already.
        self.early = len({life[0] for life in self.lives()}) - 1
        return runs

    def lives(self):
        """Each worker's life: (round, node, first time, last time)."""
        found = []
        for path in self.folder.iterdir():
            lines = [line.split() for line in path.read_text().splitlines()]
            lines = [line for line in lines if len(line) == 5]
            if path.name != "end" and lines:
                found.append((lines[0][2], path.name.split("-")[0],
                              float(lines[0][1]), float(lines[-1][1])))
        return found

    def living(self, count, runs):
        """Whether `count` workers of the newest round have begun, or a run has ended."""
        if any(run.process.poll() is not None for run in runs):
            return True
        lives = self.lives()
        newest = max(lives, key=lambda life: life[2])[0] if lives else None
        return sum(life[0] == newest for life in lives) == count

    def wait_for_next_round(self, runs):
        """Waits until the other nodes run without node rank `count - 1`."""
        before = {life[0] for life in self.lives()}
        def begun():
            return sum(life[0] not in before for life in self.lives()) == 2 * (self.count - 1)
        if not lab.poll(begun, LOSS_LIMIT + MARGIN + 20):
            self.fail(f"no next round: {self.told(runs)}")

    def assert_one_round_at_a_time(self, runs):
        """Returns when the rounds began and ended, from the first round of all nodes on."""
        rounds = {}
        for name, _, begin, end in self.lives():
            first, last = rounds.get(name, (begin, end))
            rounds[name] = min(first, begin), max(last, end)
        spans = sorted(rounds.values())
        for (_, end), (begin, _) in zip(spans, spans[1:]):
            self.assertLess(end, begin, f"two rounds at once: {rounds} {self.told(runs)}")
        return spans[self.early:]

    def end_well(self, runs):
        (self.folder / "end").touch()
        self.assert_done(runs, jobs.OK, 20)

    def go_on(self, run, *pids):
        """Continues processes of a run; nsenter has stopped itself along with the keeper."""
        for pid in (*pids, run.process.pid):
            with contextlib.suppress(ProcessLookupError):  # Another one ended it.
                os.kill(pid, signal.SIGCONT)

    def stay(self, seconds):
        """Lets this time pass: the test is that nothing happens."""
        begin = time.monotonic()
        lab.poll(lambda: time.monotonic() > begin + seconds, seconds + 1)

    def test_an_agent_that_is_stopped_loses_its_workers_before_the_next_round(self):
        runs = self.start_all("--loss-limit", LONG_LOSS_LIMIT)
        os.kill(jobs.agent_of(runs[-1]), signal.SIGSTOP)
        self.wait_for_next_round(runs)
        self.assert_one_round_at_a_time(runs)
        self.assertEqual(runs[-1].wait(20), jobs.AGENT_LOST, self.told(runs))
        self.assert_said(runs[-1], r"has stood still for \d+\.\d s \(it is stopped, as by SIGSTOP\)"
                                   r".*ended [23] processes it left behind")
        self.assert_said(runs[0], r"node\d .*its agent has stood still for .*stopped, as by SIGSTOP")
        self.end_well(runs[:-1])
        self.assertEqual(len(self.assert_one_round_at_a_time(runs)), 2)


class StandsStill(StandsStillOfTwo):
    count = 3

    def test_a_short_stop_costs_nothing(self):
        runs = self.start_all()
        agent = jobs.agent_of(runs[-1])
        os.kill(agent, signal.SIGSTOP)
        self.stay(LOSS_LIMIT / 3)
        os.kill(agent, signal.SIGCONT)
        self.stay(LOSS_LIMIT + MARGIN)
        self.end_well(runs)
        self.assertEqual(len(self.assert_one_round_at_a_time(runs)), 1, self.told(runs))

    def test_a_keeper_that_is_stopped_harms_nobody_also_when_it_goes_on(self):
        runs = self.start_all()
        keeper = runs[-1].pid
        os.kill(keeper, signal.SIGSTOP)
        self.stay(LOSS_LIMIT + MARGIN)
        self.go_on(runs[-1], keeper)
        self.stay(LOSS_LIMIT + MARGIN)
        self.end_well(runs)
        self.assertEqual(len(self.assert_one_round_at_a_time(runs)), 1, self.told(runs))

    def test_an_agent_that_goes_on_after_its_place_was_given_away_says_so(self):
        runs = self.start_all()
        both = [runs[-1].pid, jobs.agent_of(runs[-1])]
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        self.wait_for_next_round(runs)
        self.go_on(runs[-1], *reversed(both))
        self.assertEqual(runs[-1].wait(20), jobs.NODE_LOST, self.told(runs))
        self.assert_said(runs[-1], "the job went on without this node|was not heard of for")
        self.end_well(runs[:-1])

    def test_a_frozen_node_ends_when_it_thaws(self):
        runs = self.start_all()
        frozen = [runs[-1].pid, *runs[-1].descendants()]
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):  # A health check that ended.
                os.kill(pid, signal.SIGSTOP)
        self.wait_for_next_round(runs)
        thawed = time.monotonic()
        self.go_on(runs[-1], *frozen)
        self.assertEqual(runs[-1].wait(20), jobs.NODE_LOST, self.told(runs))
        last = max(end for _, node, _, end in self.lives() if node == "node2")
        self.assertLess(last - thawed, lab.PATIENCE * 4, self.told(runs))
        self.end_well(runs[:-1])


if __name__ == "__main__":
    lab.main()
