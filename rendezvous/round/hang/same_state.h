// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/contract/ids.h"
#include "rendezvous/round/hang/rank_snapshot.h"

namespace hlaunch {

// Ranks that do the same. A value.
struct SameState {
  std::string text;         // What each does: "stands in load (loader.py:88)".
  std::vector<Rank> ranks;  // In their order.
  std::vector<std::string>
      hosts;  // The ranks' hosts in that order; equal neighbours are listed once.
};

// Groups all ranks by what they do; the smallest group comes first, since the odd rank is there.
// Pure.
std::vector<SameState> GroupByState(std::vector<RankSnapshot> ranks);

// Returns what a rank does, also if it goes on: "is in all_reduce number 4 of default_pg ([4]
// Float), in step (train.py:12)", "goes on". Pure.
std::string DescribeState(const RankSnapshot& rank);

// Returns how far the ranks are that go on: "default_pg is at all_reduce number 1203 to 1205";
// empty if none has called a collective. Pure.
std::string DescribeProgress(const std::vector<RankSnapshot>& ranks);

}  // namespace hlaunch
