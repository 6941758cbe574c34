#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The hlaunch authors
"""plant_mistake.py NAME ROOT OUT: writes a source of rendezvous/voter with one mistake to OUT.

The simulation of voters must find each mistake (see CMakeLists.txt beside this). If the source
no longer has the place of a mistake, that is an error: find the new place.
"""

import pathlib
import sys

# By name: the file, the correct text, the mistake that replaces it.
MISTAKES = {
    "answers_of_old_terms": (
        "followers.cc", "follower->ballot == ballot", "follower->ballot.term <= ballot.term"),
    "lease_too_long": (
        "leadership.cc", "return began + Shortened(rule_.lease);", "return began + 2 * rule_.lease;"),
    "no_pre_vote": (
        "voter.cc", "  Canvass(/*pre=*/true);", "  Canvass(/*pre=*/false);"),
    "no_promise": (
        "voter.cc",
        "return heard_ && !known_.IsDead(leader_) && now_ < *heard_ + rule_.lease;",
        "return false;"),
    "proof_that_comes_too_late": (
        "voter.cc", "|| now_ > *counted_until_", ""),
    "small_majority": (
        "group.cc", "return members / 2 + 1;", "return (members + 1) / 2;"),
    "two_changes_at_a_time": (
        "change_members.cc", "if (!view.open.empty()) return", "if (view.open.size() > 1) return"),
    "two_decides_without_the_other": (
        "leadership.cc", "return former.size() != 2 ||", "return !former.empty() ||"),
    "votes_for_the_older": (
        "voter.cc", "HasPromised() || request.ballot < HeldBallot()", "HasPromised()"),
    "votes_twice": (
        "voter.cc", "(voted_for_ == 0 || voted_for_ == request.from)", "request.from != 0"),
}


def main():
    name, root, out = sys.argv[1:]
    file, right, wrong = MISTAKES[name]
    text = (pathlib.Path(root) / "rendezvous/voter" / file).read_text(encoding="utf-8")
    if text.count(right) != 1:
        sys.exit(f"{file}: {text.count(right)} places say {right!r}, where one is to be planted")
    pathlib.Path(out).write_text(text.replace(right, wrong), encoding="utf-8")


if __name__ == "__main__":
    main()
