#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The check of the store's histories finds what it is made for, and nothing else."""

import itertools
import random
import unittest

import linearity
from linearity import ANY, FOREVER, Operation

CLIENTS = itertools.count()


def op(name, *words, begin, end=FOREVER, result=None):
    return Operation(f"c{next(CLIENTS)}", "k", name, words, begin, end, result)


def unknown(name, *words, begin):
    return op(name, *words, begin=begin)


class Histories(unittest.TestCase):
    def assert_right(self, *ops):
        self.assertIs(linearity.linearisable(ops), True)
        self.assertEqual(linearity.judge(ops).complaints, [])

    def assert_wrong(self, *ops, piece=None):
        """The history is wrong, and the reported operations are those at the places `piece`."""
        self.assertIs(linearity.linearisable(ops), False)
        _, found = linearity.offence(ops)
        self.assertEqual([ops.index(one) for one in found], piece)
        self.assertEqual(len(linearity.judge(ops).complaints), 1)

    def test_one_after_the_other(self):
        self.assert_right(
            op("check", begin=0, end=1, result=False), op("set", "1", begin=2, end=3),
            op("get", begin=4, end=5, result="1"), op("add", 2, begin=6, end=7, result=3),
            op("compare_set", "3", "9", begin=8, end=9, result="9"),
            op("compare_set", "3", "8", begin=10, end=11, result="9"),
            op("wait", begin=12, end=13, result=True), op("delete", begin=14, end=15, result=True),
            op("delete", begin=16, end=17, result=False), op("get", begin=18, end=19, result=""),
            op("compare_set", "5", "6", begin=20, end=21, result="5"),
            op("compare_set", "", "6", begin=22, end=23, result="6"))

    def test_those_that_overlap_have_any_order(self):
        for value in ("", "1", "2"):
            self.assert_right(op("set", "1", begin=0, end=9), op("set", "2", begin=0, end=9),
                              op("get", begin=1, end=2, result=value))

    def test_a_stale_read(self):
        self.assert_wrong(op("set", "1", begin=0, end=1), op("set", "2", begin=2, end=3),
                          op("get", begin=4, end=5, result="2"),
                          op("get", begin=6, end=7, result="1"), piece=[2, 3])

    def test_a_read_that_goes_back_while_a_set_is_on_its_way(self):
        self.assert_wrong(op("set", "1", begin=0, end=1), op("set", "2", begin=2, end=9),
                          op("get", begin=3, end=4, result="2"),
                          op("get", begin=5, end=6, result="1"), piece=[1, 2, 3])

    def test_a_lost_add(self):
        self.assert_wrong(op("add", 1, begin=0, end=5, result=1),
                          op("add", 1, begin=0, end=5, result=1), piece=[0, 1])
        self.assert_wrong(op("add", 1, begin=0, end=1, result=1),
                          op("add", 1, begin=2, end=3, result=2),
                          op("get", begin=4, end=5, result="1"), piece=[1, 2])

    def test_a_double_add(self):
        self.assert_wrong(op("add", 1, begin=0, end=1, result=1),
                          op("add", 1, begin=2, end=3, result=3), piece=[0, 1])

    def test_an_add_that_nobody_knows_of_counts_once_or_not(self):
        for total in (2, 3):
            self.assert_right(op("add", 1, begin=0, end=1, result=1), unknown("add", 1, begin=0.5),
                              op("add", 1, begin=2, end=3, result=total))
        self.assert_wrong(op("add", 1, begin=0, end=1, result=1), unknown("add", 1, begin=0.5),
                          op("add", 1, begin=2, end=3, result=4), piece=[0, 1, 2])

    def test_a_write_that_nobody_knows_of_is_seen_late_or_never(self):
        old, late = op("get", begin=4, end=5, result="1"), op("get", begin=90, end=91, result="2")
        history = [op("set", "1", begin=0, end=1), unknown("set", "2", begin=2), old]
        self.assert_right(*history)
        self.assert_right(*history, late)
        self.assert_wrong(*history, late, op("get", begin=92, end=93, result="1"), piece=[1, 3, 4])

    def test_nothing_is_seen_before_it_was_asked(self):
        self.assert_wrong(op("get", begin=0, end=1, result="2"), unknown("set", "2", begin=2),
                          piece=[0])

    def test_two_win_a_comparison(self):
        self.assert_wrong(op("compare_set", "", "1", begin=0, end=5, result="1"),
                          op("compare_set", "", "2", begin=0, end=5, result="2"), piece=[0, 1])

    def test_a_key_that_was_deleted_is_gone(self):
        gone = [op("set", "1", begin=0, end=1), op("delete", begin=2, end=3, result=True)]
        self.assert_wrong(*gone, op("check", begin=4, end=5, result=True), piece=[1, 2])
        self.assert_wrong(*gone, op("wait", begin=4, end=5, result=True), piece=[1, 2])
        self.assert_wrong(*gone, op("delete", begin=4, end=5, result=True), piece=[1, 2])
        self.assert_right(*gone, op("set", "2", begin=2, end=9),
                          op("wait", begin=4, end=5, result=True))

    def test_reads_that_prove_nothing_are_not_told(self):
        noise = [op("get", begin=3.5 + i / 100, end=9, result="2") for i in range(20)]
        self.assert_wrong(op("set", "1", begin=0, end=1), op("set", "2", begin=2, end=3), *noise,
                          op("get", begin=4, end=5, result="1"), piece=[1, 22])

    def test_keys_are_judged_apart(self):
        other = Operation("c", "other", "get", (), 4, 5, "1")
        verdict = linearity.judge([op("set", "1", begin=0, end=1), other])
        self.assertEqual((verdict.keys, len(verdict.complaints)), (2, 1))
        self.assertIn("other, which held", verdict.complaints[0])

    def test_a_search_that_is_too_long_is_undecided(self):
        ops = [unknown("add", 1 << i, begin=0) for i in range(18)]
        ops.append(op("get", begin=1, end=2, result="-1"))
        self.assertIsNone(linearity.linearisable(ops, limit=1000))
        self.assertEqual(linearity.judge(ops, limit=1000).undecided, ["k"])


def happened(random_numbers, count):
    """A history of `count` operations that did happen, each around its own moment."""
    value, ops = None, []
    for moment in range(count):
        kind = random_numbers.choice(["set", "get", "add", "compare_set", "delete", "check"])
        words = {"set": (str(moment),), "add": (1,), "compare_set": (
            random_numbers.choice([value or "", "7"]), str(moment))}.get(kind, ())
        result = {"get": value or "", "check": value is not None, "delete": value is not None,
                  "add": int(value or 0) + 1}.get(kind)
        if kind == "compare_set":
            matches = (value or "") == words[0]
            result = words[1] if matches else words[0] if value is None else value
        begin, end = moment - 3 * random_numbers.random(), moment + 3 * random_numbers.random()
        if kind not in linearity.READS and random_numbers.random() < 0.05:
            end, result = FOREVER, None
        ops.append(op(kind, *words, begin=begin, end=end, result=result))
        if ops[-1].known or random_numbers.random() < 0.5:
            value, = linearity.after(value, ops[-1])
    return ops


class Drawn(unittest.TestCase):
    """Random histories: one that happened is right; one with an impossible read is wrong."""

    def test_what_happened_is_right_from_any_moment_on(self):
        for seed in range(100):
            ops = happened(random.Random(seed), 60)
            self.assertIs(linearity.linearisable(ops), True, seed)
            self.assertIs(linearity.linearisable(linearity.until(ops, 40)), True, seed)
            self.assertIs(linearity.linearisable(linearity.since(ops, 20), ANY), True, seed)

    def test_what_was_never_written_is_wrong(self):
        for seed in range(30):
            ops = happened(random.Random(seed), 60)
            never = op("get", begin=30, end=31, result="123456")
            self.assertIs(linearity.linearisable([*ops, never]), False, seed)
            _, piece = linearity.offence([*ops, never])
            self.assertIn(never, piece)
            self.assertLess(len([one for one in piece if one.known]), 15, seed)


class Lines(unittest.TestCase):
    def test_what_clients_write_is_read(self):
        ops = linearity.parse("c", '["begin", "k", "set", ["1"], 0.5]\n["end", null, 0.75]\n'
                              '["begin", "k", "wait", [], 1.5]\n["not", 0, 0]\n'
                              '["begin", "k", "add", [2], 2.5]\n["end", 3, 2.')
        self.assertEqual(ops, [Operation("c", "k", "set", ("1",), 0.5, 0.75),
                               Operation("c", "k", "add", (2,), 2.5)])


if __name__ == "__main__":
    unittest.main()
