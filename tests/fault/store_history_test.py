#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""What clients see of the master store under faults is consistent with one order for each key.

    store_history_test.py [--faults N] [--seed S] [--longest SECONDS] [History|HistoryInClear]

Three nodes: node0 has the store beside its clients. The clients of node1 reach it directly, over a
slow cable, and those of node2 through their agent's proxy. Clients record their requests and
answers (workers/history_worker.py) while agents stand still, cables are cut or lose packets,
connections are reset, and clients are killed. linearity.py judges. Without options: each fault
once, for a short time.
"""

import argparse
import collections
import os
import pathlib
import random
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "end_to_end"))

import faults  # pylint: disable=wrong-import-position
import jobs
import lab
import linearity

WORKER = str(lab.WORKERS / "history_worker.py")
CLIENTS = 2  # On each node.
CABLE = 0.002  # Seconds that a frame takes to or from node1.


def clients_of(place):
    workers = [pid for pid in lab.children(place.agent) if WORKER in lab.command_line(pid)]
    return [pid for worker in workers for pid in lab.children(worker)]


def kill_clients(place, rng):
    found = clients_of(place)
    faults.send(9, *rng.sample(found, rng.randint(min(1, len(found)), len(found))))
    return faults.nothing


def reset_connections(place, _):
    """Resets all connections between the node (also its proxy) and the store, at either end."""
    rule = ["INPUT", "-p", "tcp", "-m", "multiport", "--ports", store_port(place), "-j", "REJECT",
            "--reject-with", "tcp-reset"]
    place.in_network("iptables", "-w", "-A", *rule)
    return lambda: place.in_network("iptables", "-w", "-D", *rule)


def store_port(place):
    environment = pathlib.Path(f"/proc/{clients_of(place)[0]}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in environment if "=" in entry)["MASTER_PORT"]


# (the fault, the nodes it may hit).
FAULTS = [(faults.stop_agent, (0, 2)), (faults.drop, (1, 2)), (faults.cut, (1, 2)),
          (faults.lose_packets, (0, 1, 2)), (reset_connections, (0, 1, 2)),
          (kill_clients, (0, 1, 2))]


class History(jobs.JobTest):
    """With a token: the traffic of a proxy is encrypted."""

    count = 3
    env = {"HLAUNCH_TOKEN": lab.TOKEN}
    reach = ((), ("--no-store-proxy",), ("--store-proxy",))

    def setUp(self):
        super().setUp()
        self.rng = random.Random(int(os.environ.get("HLAUNCH_HISTORY_SEED", 1)))
        self.nodes[1].lengthen(CABLE)
        self.folder = self.lab.folder / "operations"
        self.folder.mkdir()
        self.runs = [self.start("--no-python", WORKER, self.folder, CLIENTS, nodes=[node],
                                options=options, env=self.env)[0]
                     for node, options in zip(self.nodes, self.reach)]

    def operations(self):
        return [op for path in self.folder.glob("*.ops")
                for op in linearity.parse(path.stem, path.read_text(encoding="ascii"))]

    def goes_on(self, after):
        """Waits until clients of each node have got answers to requests from now on."""
        since = time.monotonic()
        def answered():
            return {op.client.split("-")[0] for op in self.operations()
                    if op.begin > since and op.known}
        if not lab.poll(lambda: len(answered()) == len(self.nodes), 20, 0.2):
            self.fail(f"after {after} only {answered()} are served: {self.told(self.runs)}")

    def drawn_faults(self):
        """(fault, node, seconds) of each fault."""
        count = int(os.environ.get("HLAUNCH_HISTORY_FAULTS", 0))
        longest = float(os.environ.get("HLAUNCH_HISTORY_LONGEST", 0.5))
        chosen = [self.rng.choice(FAULTS) for _ in range(count)] or FAULTS
        return [(fault, self.rng.choice(nodes), self.rng.uniform(0.2, longest))
                for fault, nodes in chosen]

    def strike(self, fault, node, seconds):
        end = fault(faults.Place(self.nodes[node], self.runs[node]), self.rng)
        time.sleep(seconds)
        end()
        self.goes_on(f"{fault.__name__} on node{node} for {seconds:.1f} s")

    def test_every_key_has_an_order(self):
        self.goes_on("the start")
        done = collections.Counter()
        for fault, node, seconds in self.drawn_faults():
            self.strike(fault, node, seconds)
            done[fault.__name__] += 1
        (self.folder / "end").touch()
        self.assert_done(self.runs, jobs.OK, 30)
        self.judge(self.operations(), done)

    def judge(self, ops, done):
        names = collections.Counter(op.name for op in ops)
        verdict = linearity.judge(ops)
        print(f"faults: {dict(done)}\n{len(ops)} operations on {verdict.keys} keys: {dict(names)}; "
              f"the outcome of {sum(not op.known for op in ops)} is unknown; "
              f"{len(verdict.undecided)} keys undecided", flush=True)
        self.assertFalse(verdict.complaints, "\n".join(["", *verdict.complaints]))
        self.assertLess(len(verdict.undecided), verdict.keys / 10)
        self.assertEqual(len(names), 7, names)
        self.assertTrue(any(not op.known for op in ops))


class HistoryInClear(History):
    env = {}


def options():
    """Moves this program's own options from the command line to the environment, since the program
    may be started a second time, in namespaces."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--faults", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--longest", type=float)
    own, rest = parser.parse_known_args()
    sys.argv[1:] = rest
    for name, value in vars(own).items():
        if value is not None:
            os.environ[f"HLAUNCH_HISTORY_{name.upper()}"] = str(value)


if __name__ == "__main__":
    options()
    lab.main()
