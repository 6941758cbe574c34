#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""The check of the rounds finds the mistakes that it is made for."""

import dataclasses
import unittest

import rounds_check
from rounds_check import Excuse, Line


def a_round(name="1.a", begin=0.0, steps=range(3), world=2):
    """All lines of a correct round."""
    return [Line(f"node{rank}", 10 + rank, rank, name, world, begin + i, begin + i + 0.5, step,
                 world * (world + 1) // 2, world * step)
            for rank in range(world) for i, step in enumerate(steps)]


class Violations(unittest.TestCase):
    def assert_found(self, lines, *patterns, excuses=()):
        found = rounds_check.violations(lines, excuses)
        self.assertEqual(len(found), len(patterns), found)
        for complaint, pattern in zip(found, patterns):
            self.assertRegex(complaint, pattern)

    def test_rounds_one_after_the_other_are_right(self):
        self.assert_found(a_round() + a_round("2.b", 3, range(1, 4)))

    def test_two_rounds_at_once_are_named_with_the_ranks(self):
        self.assert_found(a_round() + a_round("2.b", 2.2, range(3, 5)),
                          r"alive at once for 0\.300 s: .*of round 1\.a .*of round 2\.b",
                          "two rounds step at once")

    def test_a_worker_that_is_only_alive_counts(self):
        ghost = Line("node1", 11, 1, "1.a", 2, 4.0, 4.0)
        self.assert_found(a_round() + [ghost] + a_round("2.b", 3), r"alive at once for 1\.000 s")

    def test_a_long_round_overlaps_with_more_than_its_next(self):
        ghost = Line("node1", 11, 1, "1.a", 2, 9.0, 9.0)
        self.assert_found(a_round() + [ghost] + a_round("2.b", 3) + a_round("3.c", 7),
                          "of round 2.b", "of round 3.c")

    def test_an_excuse_covers_life_and_the_step_that_had_begun(self):
        ghost = Line("node1", 11, 1, "1.a", 2, 2.0, 4.0, 3, 3, 6)
        lines = a_round(steps=range(2)) + a_round("2.b", 3)
        excuses = [Excuse("node1", "1.a", 1.9, 2.1, 5)]
        self.assert_found(lines + [dataclasses.replace(ghost, step=-1)], excuses=excuses)
        self.assertFalse(rounds_check.at_once(
            [line for line in [*lines, ghost] if not excuses[0].covers(line)], "step"))
        late = dataclasses.replace(ghost, begin=2.2)
        self.assertFalse(excuses[0].covers(late))
        self.assertTrue(excuses[0].covers(dataclasses.replace(ghost, begin=2.05)))
        self.assertFalse(excuses[0].covers(dataclasses.replace(ghost, host="node0")))

    def test_a_step_that_the_others_had_begun_is_excused_and_no_later_one(self):
        lines = a_round(steps=range(2)) + a_round("2.b", 3)
        excuses = [Excuse("node1", "1.a", 1.9, 2.1, 5)]
        late = Line("node1", 11, 1, "1.a", 2, 4.0, 4.1, 2, 3, 4)
        self.assert_found([*lines, late], excuses=excuses)
        later = dataclasses.replace(late, begin=4.2, end=4.3, step=3, steps=6)
        self.assert_found([*lines, late, later], "alive at once", "step at once",
                          r"last steps \{0: 1, 1: 3\}", excuses=excuses)

    def test_a_rank_that_is_held_twice(self):
        twice = dataclasses.replace(a_round()[0], pid=99, step=-1)
        self.assert_found(a_round() + [twice], r"rank 0 is held by .*10.*99")

    def test_ranks_with_a_gap(self):
        lines = [line for line in a_round(world=3) if line.rank != 1]
        self.assert_found(lines, r"ranks \[0, 2\] of 3")

    def test_a_round_that_took_no_step_may_lack_ranks(self):
        self.assert_found([Line("node1", 11, 1, "1.a", 2, 0.0, 0.0)])

    def test_sums_and_steps(self):
        lines = a_round()
        wrong = dataclasses.replace(lines[0], ranks=4)
        self.assert_found([wrong, *lines[1:]], "step 0: sums 4 and 0, not 3 and 0")
        self.assert_found([line for line in lines if line is not lines[1]], "step 2 after 0")
        self.assert_found(lines[:4], r"last steps \{0: 2, 1: 0\}")

    def test_lost_steps_are_counted(self):
        self.assertEqual(rounds_check.lost_steps(a_round() + a_round("2.b", 3, range(1, 4))), 2)

    def test_lines_are_read_as_they_are_written(self):
        self.assertEqual(rounds_check.parse("alive node1 7 3 2.ab 4 1.5"),
                         Line("node1", 7, 3, "2.ab", 4, 1.5, 1.5))
        self.assertEqual(rounds_check.parse("step node1 7 3 2.ab 4 9 1.5 1.75 10 36"),
                         Line("node1", 7, 3, "2.ab", 4, 1.5, 1.75, 9, 10, 36))
        self.assertIsNone(rounds_check.parse("step node1 7 3 2.a"))


if __name__ == "__main__":
    unittest.main()
