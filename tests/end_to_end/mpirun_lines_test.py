#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Random legal lines of Open MPI's mpirun and of MPICH's mpiexec, beside the real programs: which
ranks run on which hosts, and whether the line is refused. Every difference must be one of RULES.

40 lines, and 300 with tests/run --full. More, or others: HLAUNCH_LINES=400 HLAUNCH_SEED=7
mpirun_lines_test.py
"""

import collections
import dataclasses
import os
import random
import re
import shutil

import jobs
import lab
import mpirun_test

LINES = int(os.environ.get("HLAUNCH_LINES", 300 if os.environ.get("HLAUNCH_AT_LENGTH") else 40))
SEED = int(os.environ.get("HLAUNCH_SEED", 1))
# Open MPI 4.1 may hang if its children end at once.
SCRIPT = "echo rank ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} on $(hostname) $A; sleep 0.1"


@dataclasses.dataclass
class Line:
    """What a random line asks for."""
    hydra: bool
    hosts: list  # Pairs of a node's index and its slots; None: not said.
    in_file: bool
    ranks: int | None
    each: int | None  # Ranks per host.
    each_word: str = ""
    oversubscribe: bool = False
    localhost: bool = False  # The only host is called so.

    def slots(self):
        """The slots of each host, in their order."""
        found = collections.Counter()
        for host, slots in self.hosts:
            found[host] += slots or 1
        return found

    def wanted(self):
        """The number of ranks."""
        if self.ranks:
            return self.ranks
        return self.each * len(self.slots()) if self.each else sum(self.slots().values())


@dataclasses.dataclass
class Ran:
    code: int
    ranks: dict  # Host by rank.

    def by_host(self):
        return collections.Counter(self.ranks.values())


def spread(line):
    """How many ranks each host has if the slots fill one after another, and all hosts get an even share
    of what is beyond."""
    slots, left = line.slots(), line.ranks
    if left <= sum(slots.values()):
        filled = collections.Counter()
        for host, own in slots.items():
            filled[f"node{host}"] = min(own, left)
            left -= filled[f"node{host}"]
        return +filled
    share, more = divmod(line.ranks - sum(slots.values()), len(slots))
    return {f"node{host}": own + share + (index < more)
            for index, (host, own) in enumerate(slots.items())}


# Each says why a line may run otherwise here than by the real program.
RULES = {
    "so many ranks as -n says are started, whatever the slots": lambda line, theirs, ours: (
        not line.hydra and theirs.code != 0 and ours.code == 0 and len(ours.ranks) == line.wanted()
        and (line.each or line.localhost or any(slots is None for _, slots in line.hosts)
             or all(ours.by_host()[f"node{host}"] <= slots for host, slots in line.slots().items()))),
    "the slots that a list says are a limit": lambda line, theirs, ours: (
        ours.code == jobs.USAGE and not line.each and not line.oversubscribe and line.wanted() > sum(line.slots().values())
        and (any(slots for _, slots in line.hosts) or len(line.hosts) > len(line.slots()))),
    "N ranks per host are a limit": lambda line, theirs, ours: (
        ours.code == jobs.USAGE and line.each and line.wanted() > line.each * len(line.slots())),
    "without slots each host has the same number": lambda line, theirs, ours: (
        theirs.code == ours.code == 0 and not line.each and not any(slots for _, slots in line.hosts)
        and len(line.hosts) == len(line.slots()) and len(ours.ranks) == len(theirs.ranks)
        and max(ours.by_host().values()) - min(ours.by_host().values()) <= 1),
    "a host of a file without a number has one slot, and not one for each core": lambda line, theirs, ours: (
        not line.hydra and line.in_file and line.ranks and not line.each
        and (line.oversubscribe or line.ranks <= sum(line.slots().values())) and any(slots is None for _, slots in line.hosts) and len(ours.ranks) == len(theirs.ranks)
        and ours.by_host() == spread(line)),
    "a host of a file without a number has one rank": lambda line, theirs, ours: (
        not line.hydra and line.in_file and not line.ranks and not line.each
        and any(slots is None for _, slots in line.hosts)
        and ours.by_host() == {f"node{host}": slots for host, slots in line.slots().items()}),
    "the order of the list counts, not this host first": lambda line, theirs, ours: (
        not line.hydra and theirs.code == ours.code == 0 and len(ours.ranks) == len(theirs.ranks)
        and line.hosts[0][0] != 0 and 0 in line.slots() and "node0" in theirs.by_host()),
    "a host that comes twice is one host": lambda line, theirs, ours: (
        line.hydra and theirs.code == ours.code == 0 and len(line.hosts) > len(line.slots())
        and len(ours.ranks) == len(theirs.ranks)),
    "ranks are numbered host by host": lambda line, theirs, ours: (
        theirs.code == ours.code == 0 and theirs.by_host() == ours.by_host()),
}


class Lines(mpirun_test.OnEnteredNodes):
    count = 3

    def setUp(self):
        super().setUp()
        self.links = self.lab.folder / "links"
        made = self.nodes[0].run(lab.HLAUNCH, "--install-links", self.links)
        self.assertEqual(made.code, 0, str(made))
        self.random = random.Random(SEED)

    def line(self):
        draw = self.random
        hydra = draw.random() < 0.4
        hosts = [(host, draw.choice([None, 1, 2, 3]))
                 for host in draw.sample(range(3), draw.randint(1, 3))]
        if draw.random() < 0.15:
            hosts.append((hosts[0][0], 1))
        if draw.random() < 0.4:
            hosts = [(host, None) for host, _ in hosts]
        each = draw.choice([None, None, 1, 2])
        ranks = draw.choice([None, 1, 2, 3, 4, 6])
        if hydra and ranks is None:
            ranks = 2  # Hydra's own default is a rank for each core of its host.
        words = ["-ppn"] if hydra else ["-N", "-npernode", "--npernode", "ppr"]
        localhost = draw.random() < 0.2
        if localhost:
            hosts = [(0, slots) for _, slots in hosts]
        return Line(hydra, hosts, draw.random() < 0.4, ranks, each, draw.choice(words),
                    not hydra and draw.random() < 0.4, localhost)

    def words(self, line, number):
        def text(host, slots):
            name = "localhost" if line.localhost else self.nodes[host].ip
            if slots is None:
                return name
            return f"{name} slots={slots}" if line.in_file and not line.hydra else f"{name}:{slots}"

        all_hosts = [text(*host) for host in line.hosts]
        if line.in_file:
            file = self.lab.folder / f"hosts{number}"
            file.write_text("\n".join(all_hosts) + "\n", encoding="utf-8")
            words = ["-f" if line.hydra else "--hostfile", file]
        else:
            words = ["-hosts" if line.hydra else "-H", ",".join(all_hosts)]
        if line.ranks:
            words += ["-n", line.ranks]
        if line.each:
            words += (["--map-by", f"ppr:{line.each}:node"] if line.each_word == "ppr"
                      else [line.each_word, line.each])
        if line.hydra:
            return [*words, "-launcher", "ssh", "-launcher-exec", self.agent, "-genv", "A", "a"]
        return [*words, *(["--oversubscribe"] if line.oversubscribe else []), "--allow-run-as-root",
                "--mca", "plm_rsh_agent", self.agent, "--bind-to", "none", "-x", "A=a"]

    def start(self, line, number):
        """The real program and hlaunch, at once."""
        words = self.words(line, number)
        real = (["mpiexec.hydra", "-iface", "eth0"] if line.hydra else
                ["mpirun.openmpi", "--mca", "oob_tcp_if_include", "eth0"])
        name = "mpiexec" if line.hydra else "mpirun"
        return [self.enter(*real, *words, "sh", "-c", SCRIPT),
                self.enter(self.links / name, *words, "sh", "-c", SCRIPT)]

    def ran(self, run):
        code = run.wait(60)
        ranks = {int(rank): host for rank, host in re.findall(r"rank (\d+) on (\S+) a", run.out)}
        return Ran(code, ranks if code == 0 else {})

    def compare(self, line, number):
        """The rule that explains the line, None if there is none, and what was seen."""
        runs = self.start(line, number)
        theirs, ours = (self.ran(run) for run in runs)
        told = f"{line}\ntheirs {theirs}, ours {ours}\n{self.told(runs)}"
        if theirs.ranks == ours.ranks and (theirs.code == 0) == (ours.code == 0):
            return "the same", told
        return next((name for name, rule in RULES.items() if rule(line, theirs, ours)), None), told

    def test_hosts_and_numbers_of_ranks_are_those_of_the_real_programs(self):
        if not shutil.which("mpirun.openmpi") or not shutil.which("mpiexec.hydra"):
            self.skipTest("no mpirun.openmpi or mpiexec.hydra here (Debian: openmpi-bin, mpich)")
        found, unknown = collections.Counter(), []
        for number in range(LINES):
            line = self.line()
            rule, told = self.compare(line, number)
            if rule is None:  # The real programs may fail for themselves.
                rule, told = self.compare(line, number)
            found[rule] += 1
            if rule is None:
                unknown.append(told)
        self.assertEqual(len(unknown), 0, "\n\n".join(unknown[:3]))
        print("\n".join(f"{count:4} {rule}" for rule, count in found.most_common()))
        self.assertGreater(found["the same"], LINES // 4, str(found))


if __name__ == "__main__":
    lab.main()
