#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Injects random faults into a job that must outlive the host of its rendezvous.

    tests/bench/recovery/chaos.py [--keeper voters|file|etcd|k8s] [--faults 300] [--seed 1]

Faults and checks are those of tests/fault/chaos_test.py (no two rounds at once, ranks dense, sums
right, nothing left, a reason for every end): SIGKILL and SIGSTOP of workers, agents and keepers,
links that are down, silent or lossy, nodes without power. A quarter of the faults hit the host of
the rendezvous, or what keeps its state (see keepers.py). Needs root; k8s uses the API server of
HLAUNCH_KUBE_BIN. Prints a line for each fault, and at the end how long it took, after a fault's
end, until all nodes had taken some steps together.
"""

import argparse
import collections
import os
import pathlib
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "fault"), str(HERE)]

import chaos_test  # pylint: disable=wrong-import-position
import faults
import keepers
import lab

KIND = keepers.KINDS[os.environ.get("HLAUNCH_CHAOS_KEEPER", "voters")]
OF_HOSTS = (faults.kill_agent, faults.kill_both, faults.vanish, faults.stop_agent, faults.stop_both,
            faults.cut, faults.drop)
TRAINERS = 5 if KIND is keepers.Voters else 3


class Chaos(chaos_test.Chaos):
    count = KIND.first + TRAINERS
    trainers = slice(KIND.first, KIND.first + TRAINERS)
    nodes_of_a_round, per_node = f"{TRAINERS // 2 + 1}:{TRAINERS}", 1
    loss_limit, margin = KIND.loss_limit, KIND.margin

    def setUp(self):
        self.keeper, self.took = None, collections.defaultdict(list)
        super().setUp()
        self.few = False

    def options(self):
        self.keeper = KIND(self.nodes, {})
        return ["--nnodes", self.nodes_of_a_round, "--loss-limit", self.loss_limit,
                *self.keeper.options()]

    def tend(self):
        self.keeper.env = self.training.env
        self.keeper.tend()
        super().tend()

    def hold(self):
        """Mostly below the loss limit; sometimes beyond all limits."""
        limit, longest = self.loss_limit, self.loss_limit + self.margin
        return self.rng.uniform(*self.rng.choice([(0.05, limit / 2)] * 6 + [
            (limit / 2, longest), (longest, longest + 3)]))

    def choose(self):
        if self.rng.random() > 0.25:
            return super().choose()
        if KIND is keepers.Voters:
            return self.strike_host()
        return self.rng.choice([self.strike_service, self.strike_service, self.strike_below])()

    def strike_host(self):
        node = self.keeper.host(self.training.runs)
        fault = self.rng.choice(OF_HOSTS)
        def act():
            run = self.training.runs[node]
            if fault in (faults.kill_both, faults.vanish):
                self.training.killed.add(run)
            return fault(faults.Place(node, run), self.rng)
        return f"host_{fault.__name__} {node.name}", act, self.excused(fault, node)

    def strike_service(self):
        node = self.keeper.host()
        kind = self.rng.choice(["kill", "stop", "cut", "drop"])
        if kind in ("cut", "drop"):
            def act():
                getattr(node, kind)()
                return node.heal
            return f"host_{kind} {node.name}", act, []
        return self._strike_process(f"host_{kind} {node.name}", kind, node)

    def strike_below(self):
        members = getattr(self.keeper, "members", ())
        if not members:
            return self.strike_service()
        name, kind = self.rng.choice(members), self.rng.choice(["kill", "stop"])
        return self._strike_process(f"state_{kind} {name}", kind, name)

    def _strike_process(self, what, kind, key):
        def act():
            pids, run = self.keeper.pids(key), self.keeper.running[key]
            if kind == "stop":
                faults.send(signal.SIGSTOP, *pids)
                return lambda: faults.send(signal.SIGCONT, *pids, run.process.pid)
            self.keeper.down.add(key)
            faults.send(signal.SIGKILL, *pids)
            return lambda: self.keeper.down.discard(key)
        return what, act, []

    def unfounded(self, what, hold, ended, before, after):
        """With voters the job outlives the host; what keeps another's state has rules of its own."""
        if KIND is not keepers.Voters:
            return []
        return super().unfounded(what.removeprefix("host_"), hold, ended, before, after)

    def await_training(self, since, after):
        super().await_training(since, after)
        if not since:
            return
        self.took[" and ".join(sorted(part.split()[0] for part in after.split(" and ")))].append(
            time.monotonic() - since)

    def test_faults(self):
        print(f"{TRAINERS} nodes with a worker each, {KIND.__name__}, --loss-limit {self.loss_limit}",
              flush=True)
        try:
            self.run_faults()
        finally:
            for what, times in sorted(self.took.items()):
                if " and " not in what:
                    print(f"{what:24} {len(times):4} times, trains again after "
                          f"{statistics.median(times):5.1f} s ({max(times):.1f})", flush=True)
        for run in getattr(self.keeper, "running", {}).values():
            faults.send(signal.SIGKILL, *lab.children(run.process.pid))
        self.assert_nothing_left()


def options():
    """Moves the options to the environment, since the program may restart in namespaces."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keeper", choices=keepers.KINDS)
    parser.add_argument("--faults", type=int)
    parser.add_argument("--seed", type=int)
    own, sys.argv[1:] = parser.parse_known_args()
    for name, value in (("KEEPER", own.keeper), ("FAULTS", own.faults), ("SEED", own.seed)):
        if value is not None:
            os.environ[f"HLAUNCH_CHAOS_{name}"] = str(value)
    return own.keeper is not None


if __name__ == "__main__":
    before = os.environ.get("HLAUNCH_CHAOS_KEEPER")
    os.environ.setdefault("HLAUNCH_CHAOS_FAULTS", "300")
    options()
    if os.environ.get("HLAUNCH_CHAOS_KEEPER") != before:  # The class is made for one kind.
        os.execv(sys.executable, [sys.executable, *sys.argv])
    lab.PATIENCE = 3
    lab.main()
