#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Kills a job of DistributedDataParallel with checkpoints fifty times. It must end with the model
of an undisturbed run.

    tests/bench/recovery/fifty_kills.py --folder FOLDER [--keeper voters|file|etcd|k8s]
                                        [--kills 50] [--hosts 5] [--seed 1] [--steps 2000]
                                        [--step-seconds 0.15]

Each host is a namespace with one worker (train_in_double.py: the elastic example). Four fifths of
the kills, in random order and at random times, are SIGKILLs of a worker, an agent or a keeper, or
of a whole node whose cable is pulled at the same moment. One fifth, one after the other, hit the
host of the rendezvous in that last way, each time a different one. What is lost is restarted within
two seconds; a service once another one leads. Needs root and the torch of HLAUNCH_TORCH2_PYTHON;
see keepers.py for the keepers.

Prints, for each kill, the seconds until all workers of a round of all nodes have begun, and until
they train (which includes the start of Python and torch); then the medians, and the largest
difference between the two runs' parameters. Exits with 1 if something is not as it must be.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "end_to_end"), str(HERE.parents[1] / "fault"), str(HERE)]

import faults  # pylint: disable=wrong-import-position
import keepers
import lab

PYTHON = os.environ.get("HLAUNCH_TORCH2_PYTHON", "/usr/bin/python3")
LIMIT = 180  # Seconds for one recovery.
SAME = 1e-6  # Between parameters: the order of sums differs, in double precision.
COMPARE = """import sys, torch
one, other = (torch.load(path)["model"] for path in sys.argv[1:])
print(max((one[name] - other[name]).abs().max().item() for name in one))"""


class Job:
    """Runs on all nodes; restarts what ends with a code other than 0."""

    def __init__(self, nodes, keeper, folder, args, pause):
        self.nodes, self.keeper, self.folder, self.args = nodes, keeper, folder, args
        folder.mkdir()
        self.runs, self.all, self.down, self.pause = {}, [], set(), pause

    def command(self):
        count = len(self.nodes)
        return [lab.HLAUNCH, "--nnodes", f"{count // 2 + 1}:{count}", "--loss-limit",
                self.keeper.loss_limit, "--last-call", 1, "--max-restarts", 100000,
                "--shutdown-timeout", 1, *self.keeper.options(), "--no-python", PYTHON,
                HERE / "train_in_double.py", self.folder / "lines", "--checkpoint",
                self.folder / "model.pt", "--steps", self.args.steps, "--step-seconds", self.pause]

    def tend(self):
        self.keeper.tend()
        for node in self.nodes:
            run = self.runs.get(node)
            if node not in self.down and (run is None or run.process.poll() not in (None, 0)):
                self.runs[node] = node.start(*self.command(), env={"OMP_NUM_THREADS": 1})
                self.all.append(self.runs[node])

    def ended(self):
        return all(run.process.poll() == 0 for run in self.runs.values())

    def begun(self, since):
        """When the last worker of a complete round after `since` began; None if none has yet."""
        rounds = collections.defaultdict(list)
        path = self.folder / "lines"
        for line in path.read_text().splitlines() if path.exists() else []:
            when, _, rank, world, number = line.split()
            if float(when) > since and int(world) == len(self.nodes):
                rounds[number].append((int(rank), float(when)))
        for held in rounds.values():
            if sorted(rank for rank, _ in held) == list(range(len(self.nodes))):
                return max(when for _, when in held)
        return None

    def saved(self):
        """When the newest checkpoint was written, by the monotonic clock."""
        path = self.folder / "model.pt"
        age = time.time() - path.stat().st_mtime if path.exists() else float("inf")
        return time.monotonic() - age

    def wait(self, condition, limit):
        deadline = time.monotonic() + limit
        while not (true := condition()) and time.monotonic() < deadline:
            self.tend()
            time.sleep(0.05)
        return true

    def told(self):
        return "\n".join(f"{run.node.name}: {run.process.poll()}: {run.err[-1500:]}"
                         for run in self.all[-len(self.nodes):])


class Killer:
    def __init__(self, job, rng):
        self.job, self.rng, self.times = job, rng, collections.defaultdict(list)
        self.hosts, self.led = [], True

    def place(self, node):
        return faults.Place(node, self.job.runs[node])

    def strike(self, kind):
        """Strikes; returns the node, and the time."""
        if kind == "host":
            return self.strike_host()
        node = self.rng.choice(self.job.nodes)
        struck = time.monotonic()
        if kind == "node":
            self.pull(node, self.place(node).all())
        elif kind == "worker":
            workers = [pid for pid in lab.descendants(self.job.runs[node].process.pid)
                       if "train_in_double" in lab.command_line(pid)
                       and "/bin/python" in lab.command_line(pid).split()[0]]
            faults.send(signal.SIGKILL, *workers[:1])
        else:
            faults.send(signal.SIGKILL, *self.place(node).pids(kind))
        return node, struck

    def strike_host(self):
        node, struck = self.job.keeper.host(self.job.runs), time.monotonic()
        self.hosts.append(node.name)
        pids = (self.place(node).all() if node in self.job.nodes
                else self.job.keeper.pids(node))
        self.pull(node, pids)
        return node, struck

    def pull(self, node, pids):
        """Cuts the power: the link goes down first, so that the node sends nothing more."""
        self.job.down.add(node)
        getattr(self.job.keeper, "down", set()).add(node)
        node.drop()
        faults.send(signal.SIGKILL, *pids)
        until = time.monotonic() + self.rng.uniform(0.1, 2)
        self.job.wait(lambda: time.monotonic() > until, 60)
        self.led = self.job.wait(self.job.keeper.led_by_another, LIMIT)
        node.heal()
        self.job.down.discard(node)
        getattr(self.job.keeper, "down", set()).discard(node)

    def one(self, number, kind):
        job = self.job
        pause = self.rng.uniform(0.2, 4)
        until = time.monotonic() + pause
        job.wait(lambda: time.monotonic() > until, 60)
        if job.ended():
            raise AssertionError(f"the job ended before kill {number}: more --steps")
        if job.keeper.first and kind == "host":
            return self.one_service(number)
        node, struck = self.strike(kind)
        if not job.wait(lambda: job.begun(struck), LIMIT):
            raise AssertionError(f"no whole round {LIMIT} s after {kind} of {node.name}:\n{job.told()}")
        begun = job.begun(struck) - struck
        if not job.wait(lambda: job.saved() > struck + begun or job.ended(), LIMIT):
            raise AssertionError(f"no checkpoint {LIMIT} s after {kind} of {node.name}:\n{job.told()}")
        self.tell(number, kind, node, begun, time.monotonic() - struck)
        return None

    def one_service(self, number):
        """Workers notice nothing, and another service leads afterwards."""
        node, struck = self.strike("host")
        if not self.led:
            raise AssertionError(f"no service leads {LIMIT} s after the loss of {node.name}")
        self.tell(number, "host", node, time.monotonic() - struck, 0)

    def tell(self, number, kind, node, begun, saved):
        self.times[kind].append((begun, saved))
        print(f"{number:3} {kind:6} {node.name}: all have begun after {begun:5.1f} s, a checkpoint "
              f"after {saved:5.1f} s", flush=True)


def kinds_of(count, rng):
    """The kind of each kill; those of the host come one after the other."""
    hosts = count // 5
    others = [("worker", "agent", "keeper", "node")[i % 4] for i in range(count - hosts)]
    rng.shuffle(others)
    at = rng.randrange(len(others) + 1)
    return others[:at] + ["host"] * hosts + others[at:]


def run(args, name, kills, rng):
    """Runs one job to its end; returns its checkpoint, and whether all was well."""
    kind = keepers.KINDS[args.keeper]
    with lab.Lab(kind.first + args.hosts) as hosts:
        keeper = kind(hosts.nodes, {})
        pause = args.step_seconds if kills else 0
        folder = args.folder / name
        job = Job(hosts.nodes[kind.first:], keeper, folder, args, pause)
        began = time.monotonic()
        if not job.wait(lambda: job.begun(0), LIMIT):
            raise AssertionError(f"it does not begin:\n{job.told()}")
        killer = Killer(job, rng)
        for number, kill in enumerate(kills, 1):
            killer.one(number, kill)
        if not job.wait(job.ended, 20 + args.steps * (args.step_seconds + 1)):
            raise AssertionError(f"it does not end:\n{job.told()}")
        said = [found for one in job.all for found in re.findall(r"OK: .* loss ([-\d.]+)", one.out)]
        left = [node.name for node in job.nodes if node.left_over(3)]
        rounds = {line.split()[4] for line in (folder / "lines").read_text().splitlines()}
        print(f"{name}: {time.monotonic() - began:.0f} s, {len(rounds)} rounds, loss {said}, left over "
              f"on {left or 'no node'}; hosts that died: {killer.hosts}", flush=True)
        for what, times in sorted(killer.times.items()):
            begun, saved = zip(*times)
            print(f"{what:7} {len(times):3} times: begun {statistics.median(begun):.1f} s (worst "
                  f"{max(begun):.1f}), checkpoint {statistics.median(saved):.1f} s ({max(saved):.1f})")
        alternate = all(one != other for one, other in zip(killer.hosts, killer.hosts[1:]))
        return folder / "model.pt", not left and len(said) == 1 and alternate


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keeper", choices=keepers.KINDS, default="voters")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--hosts", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--step-seconds", type=float, default=0.15)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="must not exist yet")
    args = parser.parse_args()
    lab.PATIENCE = 3
    args.folder.mkdir()
    rng = random.Random(args.seed)
    calm, calm_well = run(args, "undisturbed", [], rng)
    killed, killed_well = run(args, "killed", kinds_of(args.kills, rng), rng)
    told = subprocess.run([PYTHON, "-c", COMPARE, calm, killed], check=True, text=True,
                          stdout=subprocess.PIPE)
    difference = float(told.stdout)
    print(f"largest difference between the parameters: {difference:.3g}")
    return not (calm_well and killed_well and difference < SAME)


if __name__ == "__main__":
    sys.exit(main())
