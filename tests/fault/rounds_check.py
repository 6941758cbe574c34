# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The rules for the lines of workers/chaos_worker.py. Pure: lines in, complaints out."""

import collections
import dataclasses


@dataclasses.dataclass(frozen=True)
class Line:
    """One line of a worker. It has no step if the worker only reports that it is alive."""
    host: str
    pid: int
    rank: int
    round: str
    world: int
    begin: float
    end: float
    step: int = -1
    ranks: int = 0
    steps: int = 0

    @property
    def who(self):
        return f"rank {self.rank} ({self.host}, pid {self.pid}) of round {self.round}"


@dataclasses.dataclass(frozen=True)
class Excuse:
    """A host on which nothing could act until `end`: see agent/DESIGN.md, "Stands still". It came
    to a stop between `begin` and `stands`. Meanwhile its workers of the round may be alive, and
    finish the step that they had begun before; uncovered() says which further step is excused."""
    host: str
    round: str
    begin: float
    stands: float
    end: float

    def concerns(self, line):
        return ((line.host, line.round) == (self.host, self.round)
                and self.begin <= line.end <= self.end)

    def covers(self, line):
        return self.concerns(line) and (line.step < 0 or line.begin <= self.stands)


def parse(text):
    """The Line in one line of text; None if the text is incomplete."""
    words = text.split()
    if len(words) == 7 and words[0] == "alive":
        begin = end = words[6]
        numbers = ()
    elif len(words) == 11 and words[0] == "step":
        begin, end = words[7:9]
        numbers = [int(words[i]) for i in (6, 9, 10)]
    else:
        return None
    return Line(words[1], int(words[2]), int(words[3]), words[4], int(words[5]), float(begin),
                float(end), *numbers)


def uncovered(lines, excuses):
    """The lines that are not excused. An excuse covers lines, and the first step that each worker
    begins after it came to a stop. The others may have begun that step, and their messages wait in
    the worker's sockets, so the step ends without them once the worker goes on."""
    first = {}
    for number, excuse in enumerate(excuses):
        for line in lines:
            if line.step < 0 or not excuse.concerns(line) or excuse.covers(line):
                continue
            known = first.setdefault((number, line.pid), line)
            if line.begin < known.begin:
                first[number, line.pid] = line
    late = {id(line) for line in first.values()}
    return [line for line in lines
            if id(line) not in late and not any(excuse.covers(line) for excuse in excuses)]


def by_round(lines):
    found = collections.defaultdict(list)
    for line in lines:
        found[line.round].append(line)
    return found


def at_once(lines, what):
    """Complaints about rounds whose times, from their first line to their last, overlap."""
    spans = sorted(((min(own, key=lambda line: line.begin), max(own, key=lambda line: line.end))
                    for own in by_round(lines).values()), key=lambda span: span[0].begin)
    complaints, latest = [], None
    for first, last in spans:
        if latest is not None and latest.end >= first.begin:
            complaints.append(
                f"two rounds {what} at once for {latest.end - first.begin:.3f} s: {latest.who} until "
                f"{latest.end:.3f}, {first.who} from {first.begin:.3f}")
        if latest is None or last.end > latest.end:
            latest = last
    return complaints


def wrong_ranks(lines):
    """Complaints about ranks with two holders, and missing ranks in a round that took steps."""
    complaints = []
    for name, own in by_round(lines).items():
        holders = collections.defaultdict(set)
        for line in own:
            holders[line.rank].add((line.host, line.pid))
        for rank, held in sorted(holders.items()):
            if len(held) > 1:
                complaints.append(f"round {name}: rank {rank} is held by {sorted(held)}")
        worlds = {line.world for line in own}
        if len(worlds) > 1:
            complaints.append(f"round {name}: world sizes {sorted(worlds)}")
        stepped = any(line.step >= 0 for line in own)
        if stepped and sorted(holders) != list(range(max(worlds))):
            complaints.append(f"round {name}: ranks {sorted(holders)} of {max(worlds)}")
    return complaints


def wrong_sums(lines):
    complaints = []
    for line in lines:
        if line.step < 0:
            continue
        ranks, steps = line.world * (line.world + 1) // 2, line.world * line.step
        if (line.ranks, line.steps) != (ranks, steps):
            complaints.append(f"{line.who}, step {line.step}: sums {line.ranks} and {line.steps}, "
                              f"not {ranks} and {steps}")
    return complaints


def wrong_steps(lines):
    """Complaints about steps that a rank skipped, and about ranks more than one step apart."""
    complaints = []
    for name, own in by_round(line for line in lines if line.step >= 0).items():
        last = {}
        for line in sorted(own, key=lambda line: line.end):
            if line.rank in last and line.step != last[line.rank] + 1:
                complaints.append(f"{line.who}: step {line.step} after {last[line.rank]}")
            last[line.rank] = line.step
        if max(last.values()) - min(last.values()) > 1:
            complaints.append(f"round {name}: last steps {last}")
    return complaints


def violations(lines, excuses=()):
    counted = uncovered(lines, excuses)
    return (at_once(counted, "alive") + at_once([line for line in counted if line.step >= 0], "step")
            + wrong_ranks(lines) + wrong_sums(lines) + wrong_steps(lines))


def lost_steps(lines):
    """Counts the repeated steps: those that the round before had already taken."""
    spans = sorted((min(line.begin for line in own), min(line.step for line in own),
                    max(line.step for line in own))
                   for own in by_round(line for line in lines if line.step >= 0).values())
    return sum(max(0, last + 1 - first)
               for (_, _, last), (_, first, _) in zip(spans, spans[1:]))
