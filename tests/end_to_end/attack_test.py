#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Strangers without the token attack every listening port while a job of two nodes trains: its
steps go on, and its sums stay right."""

import contextlib
import os
import pathlib
import re
import sys
import time

import jobs
import lab

sys.path.insert(0, str(lab.ROOT / "tests/fault"))
import rounds_check  # pylint: disable=wrong-import-position

WORKER = str(lab.WORKERS / "chaos_worker.py")
STRANGER = lab.WORKERS / "stranger.py"
RAPID_RESET = lab.WORKERS / "rapid_reset.py"
STEPS = 12  # Before the attacks, and during each one.
RENDEZVOUS, METRICS = 29400, 9400
DAY = 86400  # Seconds, longer than the test.


def listening(pid):
    """The TCP ports on which a process listens, except those on loopback."""
    sockets = set()
    with contextlib.suppress(FileNotFoundError):
        for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # It was closed meanwhile.
                sockets |= set(re.findall(r"socket:\[(\d+)\]", os.readlink(entry)))
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            address, port = words[1].rsplit(":", 1)
            if words[3] == "0A" and words[9] in sockets and address != "0100007F":
                ports.add(int(port, 16))
    return ports


class Attacked(jobs.JobTest):
    count = 3

    def setUp(self):
        super().setUp()
        self.folder = self.lab.folder / "lines"
        self.folder.mkdir()
        self.runs = [node.start(
            lab.HLAUNCH, "--nnodes", 2, "--nproc-per-node", 2, "--rdzv-endpoint",
            f"node0:{RENDEZVOUS}", "--metrics-port", f"0.0.0.0:{METRICS}", "--no-python",
            jobs.PYTHON, WORKER, self.folder, node.name,
            env={"HLAUNCH_TOKEN": lab.TOKEN, "PYTHONPATH": lab.BIN.parent / "python",
                 "PYTHONDONTWRITEBYTECODE": 1}) for node in self.nodes[:2]]

    def lines(self):
        text = "".join(path.read_text() for path in self.folder.glob("*.lines"))
        return [line for line in map(rounds_check.parse, text.splitlines()) if line]

    def pace(self, what):
        """Waits until rank 0 has taken some more steps; prints how many it takes per second."""
        def taken():
            return [line for line in self.lines()
                    if line.rank == 0 and line.step >= 0 and line.begin > began]
        began = time.monotonic()
        if not lab.poll(lambda: len(taken()) >= STEPS, 20, 0.1):
            self.fail(f"no steps while there is {what}: {self.told(self.runs)}")
        steps = taken()
        print(f"{what}: {len(steps) / (steps[-1].end - began):.1f} steps a second", flush=True)

    def rank_0(self):
        agent = jobs.agent_of(self.runs[0])
        found = [pid for pid in lab.children(agent) if "chaos_worker" in lab.command_line(pid)]
        return min(found, key=lambda pid: int(self.variable(pid, "RANK")))

    def variable(self, pid, name):
        environment = pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0")
        return dict(entry.split("=", 1) for entry in environment if "=" in entry)[name]

    def attacks(self):
        """Yields (name, command line) of each attack."""
        rank_0 = self.rank_0()
        store = int(self.variable(rank_0, "MASTER_PORT"))
        comm = sorted(listening(rank_0))
        self.assertTrue(comm, "rank 0 listens nowhere")
        yield "rapid reset", [RAPID_RESET, "node0", RENDEZVOUS, DAY, "clear"]
        yield "rapid reset over TLS", [RAPID_RESET, "node0", RENDEZVOUS, DAY, "stranger.hlaunch"]
        for name, port in (("the rendezvous", RENDEZVOUS), ("the store", store), ("a rank", comm[0])):
            yield f"garbage for {name}", [STRANGER, "node0", port, "garbage"]
        yield "half-open TLS", [STRANGER, "node0", RENDEZVOUS, "half-tls"]
        yield "slow metrics connections", [STRANGER, "node0", METRICS, "slow-http"]
        yield "unfinished store values", [STRANGER, "node0", store, "half-value"]
        yield "a false rank 1", [STRANGER, "node0", comm[0], "rank"]

    def test_strangers_change_nothing(self):
        lab.poll(lambda: any(line.step >= 0 for line in self.lines()), 20)
        self.pace("no attack")
        attackers = []
        for name, command in self.attacks():
            attackers.append(self.nodes[2].start(sys.executable, *command))
            if command[0] == STRANGER:
                attackers[-1].wait_for("begun")
            self.pace(f"{name} as well" if len(attackers) > 1 else name)
        for attacker in attackers:
            self.assertIsNone(attacker.process.poll(), str(attacker))
            attacker.signal(9)
            attacker.wait(10)
        self.pace("no attack any more")
        # One line stands for all refusals. Which attacker comes first is not fixed.
        self.assert_said(self.runs[0], "refused .*10.77.0.12 .*: it "
                                       "(has (no|another) token|does not speak gRPC)")
        self.assertRegex(self.runs[0].out + self.runs[0].err,
                         "rank 0 closed a connection from 10.77.0.12:.*is not a rank")
        (self.folder / "end").touch()
        self.assert_done(self.runs, jobs.OK, 30)
        self.assertEqual(rounds_check.violations(self.lines()), [])
        self.assertEqual(len({line.round for line in self.lines()}), 1, self.told(self.runs))


if __name__ == "__main__":
    lab.main()
