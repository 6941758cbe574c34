#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Injects random faults into a job whose workers record what they do. rounds_check has the rules.

    chaos_test.py [--faults N] [--seed S] [--loss-limit L] [WithService|Embedded]

Three nodes of two workers each, with a rendezvous as a service (WithService) or within node0's
agent (Embedded). A process that ends is started again, as a scheduler would do. After each fault
the job must train on all nodes again, only what the fault concerned may have ended, and what ended
must have printed why. A machine that stood still itself meanwhile excuses an end. Without options:
a few short faults.
"""

import argparse
import collections
import os
import pathlib
import random
import signal
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

import faults  # pylint: disable=wrong-import-position
import jobs
import lab
import rounds_check

WORKER = str(lab.WORKERS / "chaos_worker.py")
PACKAGE = lab.BIN.parent / "python"
PER_NODE = 2
DEADLY = [fault.__name__ for fault in faults.DEADLY]
OPTIONS = ["--shutdown-timeout", 0.5, "--last-call", 3, "--max-restarts", 1000000, "--preflight",
           "off"]
FEW = 10  # Faults in the normal suite.


class Standstill(threading.Thread):
    """Measures how long this machine kept a process from running that wanted to."""

    STEP = 0.02

    def __init__(self):
        super().__init__(daemon=True)
        self._longest = 0

    def run(self):
        while True:
            began = time.monotonic()
            time.sleep(self.STEP)
            self._longest = max(self._longest, time.monotonic() - began - self.STEP)

    def take(self):
        """The longest standstill since the last call."""
        longest, self._longest = self._longest, 0
        return longest


class Training:
    """The job: restarts what has ended, and reads what the workers write."""

    def __init__(self, nodes, folder, env, options, per_node):
        self.nodes, self.folder, self.env = nodes, folder, env
        self.options, self.per_node = [*OPTIONS, "--nproc-per-node", per_node, *options], per_node
        folder.mkdir()
        self.runs, self.ended, self.lines, self._read = {}, [], [], {}
        self.killed = set()  # Keepers, which cannot print why they end.

    def tend(self):
        for node in self.nodes:
            run = self.runs.get(node)
            if run is not None and run.process.poll() is None:
                continue
            if run is not None:
                self.ended.append((node.name, run))
            self.runs[node] = node.start(
                lab.HLAUNCH, *self.options, "--no-python", jobs.PYTHON, WORKER, self.folder, node.name,
                env={"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": 1, **self.env})
        self.read()

    def read(self):
        for path in self.folder.glob("*.lines"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            whole = text[:text.rfind(b"\n") + 1]
            self._read[path] = self._read.get(path, 0) + len(whole)
            self.lines += filter(None, map(rounds_check.parse, whole.decode().splitlines()))

    def newest(self):
        return max(self.lines, key=lambda line: line.end).round if self.lines else ""

    def trains(self, since):
        """Whether all nodes have taken some steps that began after `since`."""
        world, seen = self.per_node * len(self.nodes), 0
        for line in reversed(self.lines[-5000:]):
            seen += line.step >= 0 and line.begin > since and line.world == world
        return seen >= 3 * world

    def unnamed_ends(self):
        """Runs that ended without a message, or with a code that is not hlaunch's own."""
        return [f"{name} ended with {run.process.returncode} unnamed: {run}"
                for name, run in self.ended if run not in self.killed
                and not (run.process.returncode in jobs.OWN_CODES and jobs.own_lines(run))]


class Chaos(lab.LabTest):
    trainers = slice(0, 3)  # The nodes that train.
    nodes_of_a_round, per_node = "2:3", PER_NODE
    loss_limit = margin = None  # As the command line says.

    def options(self):
        """The options that tell the job where it meets and how long it waits."""
        return ["--nnodes", self.nodes_of_a_round, "--loss-limit", self.loss_limit,
                "--rdzv-endpoint", "node0:29400"]

    def setUp(self):
        super().setUp()
        self.count_of_faults = int(os.environ.get("HLAUNCH_CHAOS_FAULTS", FEW))
        self.few = self.count_of_faults <= FEW
        if self.loss_limit is None:
            self.loss_limit = float(os.environ.get("HLAUNCH_CHAOS_LOSS_LIMIT", 2 if self.few else 6))
        self.lease = min(5, self.loss_limit / 3)
        self.margin = self.margin or 5 + self.lease
        self.standstill = Standstill()
        self.standstill.start()
        self.rng = random.Random(int(os.environ.get("HLAUNCH_CHAOS_SEED", 1)))
        token = self.rng.random() < 0.5
        env = {"HLAUNCH_TOKEN": lab.TOKEN} if token else {}
        self.training = Training(self.nodes[self.trainers], self.lab.folder / "lines", env,
                                 self.options(), self.per_node)
        self.excuses, self.complaints, self.done = [], [], collections.Counter()
        self.stood_still = 0

    def wait(self, seconds):
        """Waits, and restarts what ends meanwhile."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.tend()
            time.sleep(min(left, 0.05))

    def tend(self):
        self.training.tend()

    def await_training(self, since, after):
        def trains():
            self.tend()
            return self.training.trains(since)
        if not lab.poll(trains, 60, 0.05):
            self.fail(f"no progress after {after}: "
                      + "\n".join(str(run) for run in self.training.runs.values()))

    def hold(self):
        """The length of a fault: below the loss limit, around it, or beyond all limits."""
        limit, longest = self.loss_limit, self.loss_limit + self.margin
        if self.few:
            return self.rng.uniform(0.05, 0.5)
        return self.rng.uniform(*self.rng.choice([(0.05, limit / 2)] * 3 + [
            (limit / 2, longest), (longest, longest + 3)]))

    def choose(self):
        """(name, action, nodes whose workers may live on) of the next fault."""
        fault, node = self.rng.choice(faults.OF_NODES), self.rng.choice(self.training.nodes)
        def act():
            run = self.training.runs[node]
            if fault in (faults.kill_keeper, faults.kill_both, faults.vanish):
                self.training.killed.add(run)
            return fault(faults.Place(node, run), self.rng)
        return f"{fault.__name__} {node.name}", act, self.excused(fault, node)

    def excused(self, fault, node):
        """The nodes on which nothing can act meanwhile: workers may live on, but start no step."""
        return [node] if fault in faults.EXCUSED else []

    def one_fault(self, number):
        """Injects a fault, sometimes two on two nodes; returns once all nodes train again."""
        chosen = [self.choose()]
        if self.rng.random() < 0.15:
            other = self.choose()
            if other[0].split()[1] != chosen[0][0].split()[1]:  # A link that is cut cannot drop.
                chosen.append(other)
        hold, begin = self.hold(), time.monotonic()
        ended, rounds = len(self.training.ended), self.training.newest()
        self.standstill.take()
        undo = [act() for _, act, _ in chosen]
        acted = time.monotonic()
        if all(heal is faults.nothing for heal in undo):
            hold = min(hold, 0.5)  # It has happened; nothing lasts.
        self.wait(hold)
        for heal in reversed(undo):
            heal()
        healed = time.monotonic()
        late = healed + 10 * lab.PATIENCE
        self.excuses += [rounds_check.Excuse(node.name, rounds, begin, acted, late)
                         for _, _, excused in chosen for node in excused]
        what = " and ".join(name for name, _, _ in chosen)
        self.await_training(healed, what)
        took = time.monotonic() - healed
        if hold > self.loss_limit / 2:
            self.wait(self.lease)  # Its time was nearly up; the next fault is to be a single one.
        for name, _, _ in chosen:
            self.done[name.split()[0]] += 1
        stood = self.standstill.take()
        ended = self.training.ended[ended:]
        ends = " ".join(f"{name}:{run.process.returncode}" for name, run in ended)
        then = self.training.newest()
        print(f"{number:3} {what} for {hold:.2f} s: round {rounds.split('.')[0]} -> "
              f"{then.split('.')[0]}, trains after {took:.1f} s; ended: {ends or 'none'}"
              f"{f'; this machine stood still for {stood:.1f} s' if stood >= self.lease / 4 else ''}",
              flush=True)
        if stood >= self.lease / 2:
            self.stood_still += 1
            return
        if len(chosen) == 1:
            self.complaints += [f"{number} {what} for {hold:.2f} s: {complaint}" for complaint in
                                self.unfounded(what, hold, ended, rounds, then)]

    def unfounded(self, what, hold, ended, before, after):
        """What a single fault must not do: begin the job anew, end another node, or, if it was
        short, the node that it hit."""
        fault, hit = what.split()
        if int(after.split(".")[0]) < int(before.split(".")[0]):
            yield f"the job began anew, round {before} -> {after}"
        short = hold < self.loss_limit - self.lease and fault not in DEADLY
        for name, run in ended:
            if name != hit or short:
                yield f"{name} ended with {run.process.returncode}: {run}"
                yield from self.further_evidence()

    def further_evidence(self):
        """What else is to be read where a node has ended without a reason."""
        return []

    def run_faults(self):
        began = time.monotonic()
        self.await_training(0, "the start")
        number = 0
        while number < self.count_of_faults:
            self.one_fault(number)
            number = sum(self.done.values())
        self.end()
        lines = self.training.lines
        complaints = (self.complaints + rounds_check.violations(lines, self.excuses)
                      + self.training.unnamed_ends())
        steps = {(line.round, line.step) for line in lines if line.step >= 0}
        print(f"{number} faults in {time.monotonic() - began:.0f} s: {len(complaints)} violations, "
              f"{len({line.round for line in lines})} rounds, {len(self.training.ended)} ends, "
              f"{len(steps)} steps, {rounds_check.lost_steps(lines)} of them lost; "
              f"this machine stood still at {self.stood_still} faults; "
              f"{dict(sorted(self.done.items()))}", flush=True)
        self.assertFalse(complaints, "\n".join(complaints))

    def end(self):
        (self.training.folder / "end").touch()
        runs = list(self.training.runs.values())
        for run in runs:
            self.assertEqual(run.wait(30), jobs.OK, "\n".join(map(str, runs)))
        self.training.read()


class Embedded(Chaos):
    count = 3

    def test_faults(self):
        self.run_faults()
        self.assert_nothing_left()


def times_connected(run):
    """How often a node has said that it has a rendezvous (again)."""
    return run.err.count(": connected to the rendezvous at ")


def misses_service(run):
    """Whether the last that a node has said of its rendezvous is that it has none."""
    return run.err.rfind(": rendezvous at ") > run.err.rfind(": connected to the rendezvous at ")


class WithService(Chaos):
    count = 4
    trainers = slice(1, 4)

    def setUp(self):
        super().setUp()
        self.service, self.service_may_live = None, True
        self.said_connected = {}  # By run: how often, when the service was killed.

    def tend(self):
        if self.service_may_live and (self.service is None
                                      or self.service.process.poll() is not None):
            self.service = self.nodes[0].start(
                lab.BIN / "hlaunch-rendezvous", "--listen", 29400, "--state",
                f"file://{self.lab.folder / 'state'}", env=self.training.env)
        super().tend()

    def choose(self):
        if self.rng.random() > 0.12:
            return super().choose()
        act = self.rng.choice([self.kill_service, self.stop_service, self.cut_service])
        return f"{act.__name__} node0", act, []

    def unfounded(self, what, hold, ended, before, after):
        """Nodes end themselves if they do not hear of the service for the loss limit."""
        if what.split()[0].endswith("_service") and hold > self.loss_limit - self.lease:
            ended = []
        return super().unfounded(what, hold, ended, before, after)

    def await_training(self, since, after):
        """Workers train without the service, so that does not say whether the nodes have found it
        again, after a cut of their own, too. If they have not, the next fault is no single one."""
        super().await_training(since, after)

        def all_found():
            self.tend()
            return all(times_connected(run) > self.said_connected.get(run, -1)
                       and not misses_service(run) for run in self.training.runs.values())
        if not lab.poll(all_found, 60, 0.05):
            self.fail(f"not all nodes find the service again after {after}: {self.service}\n"
                      + "\n".join(str(run) for run in self.training.runs.values()))
        self.said_connected = {}
        super().await_training(time.monotonic(), after)  # Those that ended meanwhile are back.

    def further_evidence(self):
        return [f"the service: {self.service}"]

    def kill_service(self):
        self.service_may_live = False
        self.said_connected = {run: times_connected(run) for run in self.training.runs.values()
                               if run.process.poll() is None}
        faults.send(signal.SIGKILL, *lab.children(self.service.process.pid))
        def come_back():
            self.service_may_live = True
        return come_back

    def stop_service(self):
        return faults.Place(self.nodes[0], self.service).stop(
            lab.children(self.service.process.pid))

    def cut_service(self):
        self.nodes[0].drop()
        return self.nodes[0].heal

    def test_faults(self):
        self.run_faults()
        self.service.signal(signal.SIGTERM)
        self.assertEqual(self.service.wait(10), 0, str(self.service))
        self.assert_nothing_left()


def options():
    """Moves this program's own options from the command line to the environment, since the program
    may be started a second time, in namespaces."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--faults", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--loss-limit", type=float)
    own, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    for name, value in (("HLAUNCH_CHAOS_FAULTS", own.faults), ("HLAUNCH_CHAOS_SEED", own.seed),
                        ("HLAUNCH_CHAOS_LOSS_LIMIT", own.loss_limit)):
        if value is not None:
            os.environ[name] = str(value)


if __name__ == "__main__":
    options()
    lab.main()
