# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""Checks whether what clients saw of the master store is consistent with one order for each key,
with each operation at one moment between its begin and its end. Pure: operations in, verdicts out.

An operation without an end may have happened at any time after its begin, or never. The search is
that of Wing and Gong with a memory: of orders that have done the same operations and left the same
value, only one is tried.
"""

import bisect
import collections
import dataclasses
import json
import math

FOREVER = math.inf
LIMIT = 200_000  # Steps of a search; a longer history counts as undecided.
ANY, PRESENT = "any value or none", "any value"  # What a key may hold where a piece begins.
READS = ("get", "check", "wait")


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation of a client on a key: set(value), get(), add(number), compare_set(expected,
    desired), delete(), check() or wait(), and the result that the client got, if there is an end.
    An empty key has the value None, and "" for those who get it."""
    client: str
    key: str
    name: str
    words: tuple
    begin: float
    end: float = FOREVER
    result: object = None

    @property
    def known(self):
        return self.end < FOREVER

    @property
    def reads(self):
        """Whether the operation changes nothing, wherever it stands in the order."""
        return self.name in READS or (self.name == "delete" and self.known and not self.result)

    def __str__(self):
        asked = f"{self.name}({', '.join(map(str, self.words))})"
        if not self.known:
            return f"{self.begin:.6f} to ?         {self.client}: {asked}, if at all"
        return f"{self.begin:.6f} to {self.end:.6f}  {self.client}: {asked} = {self.result!r}"


# ---- What an operation does to a value ----

def after_set(_, op):
    return [op.words[0]]


def after_get(value, op):
    if value is ANY:
        return [op.result] if op.result else [None, ""]
    if value is PRESENT:
        return [op.result]
    return [value] if (value or "") == op.result else []


def after_add(value, op):
    if value in (ANY, PRESENT):
        return [str(op.result) if op.known else PRESENT]
    total = int(value or 0) + op.words[0]
    return [str(total)] if not op.known or total == op.result else []


def after_compare_set(value, op):
    expected, desired = op.words
    if value in (ANY, PRESENT):
        if not op.known:
            return [value, desired]
        found = [expected, op.result, *([None] if value is ANY else [])]
        return list(dict.fromkeys(then for one in found for then in after_compare_set(one, op)))
    if (value or "") == expected:
        value = result = desired
    else:
        result = expected if value is None else value
    return [value] if not op.known or result == op.result else []


def after_delete(value, op):
    if not op.known or value is ANY:
        return [None]
    return [None] if (value is not None) == op.result else []


def after_check(value, op):
    exists = op.result or op.name == "wait"
    if value is ANY:
        return [PRESENT if exists else None]
    return [value] if (value is not None) == exists else []


AFTER = {"set": after_set, "get": after_get, "add": after_add, "compare_set": after_compare_set,
         "delete": after_delete, "check": after_check, "wait": after_check}


def after(value, op):
    """What a key can hold after `op` found `value`; empty if `op` cannot have had its result."""
    return AFTER[op.name](value, op)


# ---- The search ----

def first_of_those_left(ops, done):
    """The operations that may be next: no other operation left had ended before they began."""
    earliest, found = FOREVER, []
    for i in range((~done & (done + 1)).bit_length() - 1, len(ops)):
        if done >> i & 1:
            continue
        if ops[i].begin > earliest:
            break
        earliest = min(earliest, ops[i].end)
        found.append(i)
    return found


def nexts(ops, done, value):
    """(done, value) after each operation that may be next, the most likely one last."""
    left = first_of_those_left(ops, done)
    for i in left:
        # This is always right to do at once: it fits, and changes nothing.
        if ops[i].reads and after(value, ops[i]) == [value]:
            return [(done | 1 << i, value)]
    left.sort(key=lambda i: -ops[i].end)
    return [(done | 1 << i, then) for i in left for then in after(value, ops[i])]


def linearisable(ops, first=None, limit=LIMIT):
    """Whether operations on one key that held `first` are consistent with one order; None if
    `limit` steps do not decide it."""
    ops = sorted((op for op in ops if op.known or not op.reads), key=lambda op: op.begin)
    needed = sum(1 << i for i, op in enumerate(ops) if op.known)
    left, seen = [(0, first)], set()
    while left:
        done, value = left.pop()
        if done & needed == needed:
            return True
        if (done, value) in seen:
            continue
        seen.add((done, value))
        if len(seen) > limit:
            return None
        left += nexts(ops, done, value)
    return False


# ---- The shortest piece ----

def forget(op):
    """The same operation, as if it were unknown whether it happened."""
    return dataclasses.replace(op, end=FOREVER, result=None)


def until(ops, time):
    """The operations that had begun by then; the result is unknown if one had not ended."""
    return [op if op.end <= time else forget(op) for op in ops if op.begin <= time]


def since(ops, time):
    """The operations that had not ended before, for a key that holds ANY by then. Those that had
    begun may have happened before."""
    return [op if op.begin >= time else forget(op) for op in ops if op.end >= time]


def offence(ops, limit=LIMIT):
    """(first, piece): a part of operations on one key that no order explains if the key held
    `first`, and that cannot be shortened at either end. Requires: no order explains `ops`."""
    def fails(part, first=None):
        return linearisable(part, first, limit) is False
    told = {(op.client, op.begin): op for op in ops}
    ends = sorted(op.end for op in ops if op.known)
    last = bisect.bisect_left(ends, True, hi=len(ends) - 1,
                              key=lambda time: fails(until(ops, time)))
    first, piece = None, until(ops, ends[last])
    begins = sorted(op.begin for op in piece)
    cuts = bisect.bisect_left(begins, True, key=lambda time: not fails(since(piece, time), ANY))
    if cuts:
        first, piece = ANY, since(piece, begins[cuts - 1])
    for op in [op for op in piece if op.reads]:
        rest = [other for other in piece if other is not op]
        if not op.known or fails(rest, first):
            piece = rest
    return first, [told[op.client, op.begin] for op in sorted(piece, key=lambda op: op.begin)]


@dataclasses.dataclass
class Verdict:
    keys: int
    complaints: list  # One text for each key whose operations no order explains.
    undecided: list  # Keys.


def complain(key, ops, limit):
    first, piece = offence(ops, limit)
    held = "nothing" if first is None else first
    return "\n  ".join([f"{key}, which held {held}: no order of these explains what was seen",
                        *map(str, piece)])


def judge(ops, limit=LIMIT):
    """Judges operations on many keys, all of which were empty at first."""
    keys = collections.defaultdict(list)
    for op in ops:
        keys[op.key].append(op)
    verdict = Verdict(len(keys), [], [])
    for key, own in keys.items():
        found = linearisable(own, limit=limit)
        if found is None:
            verdict.undecided.append(key)
        elif not found:
            verdict.complaints.append(complain(key, own, limit))
    return verdict


# ---- What workers/history_worker.py writes ----

def parse(client, text):
    """The operations in one client's lines: ["begin", key, name, words, time], then ["end", result,
    time], or ["not", 0, 0] if nothing was asked after all. An incomplete line is ignored."""
    ops = []
    for line in text.split("\n")[:-1]:
        kind, *told = json.loads(line)
        if kind == "begin":
            key, name, words, time = told
            ops.append(Operation(client, key, name, tuple(words), time))
        elif kind == "end":
            ops[-1] = dataclasses.replace(ops[-1], result=told[0], end=told[1])
        else:
            ops.pop()
    return ops
