// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/contract/ids.h"
#include "rendezvous/hang/rank_picture.h"

namespace hlaunch {

// Ranks that do the same. A value.
struct SameState {
  std::string text;         // What each does: "stands in load (loader.py:88)".
  std::vector<Rank> ranks;  // In their order.
  std::vector<std::string>
      hosts;  // Theirs in that order, each once where its ranks follow each other.
};

// Everybody, by what they do: the fewest first, since that is where the odd one is. Pure.
std::vector<SameState> GroupByState(std::vector<RankPicture> ranks);

// What a rank does, also where it goes on: "is in all_reduce number 4 of default_pg ([4] Float), in
// step (train.py:12)", "goes on". Pure.
std::string DescribeState(const RankPicture& rank);

// How far those are that go on: "default_pg is at all_reduce number 1203 to 1205"; empty: nobody
// has called a collective. Pure.
std::string DescribeProgress(const std::vector<RankPicture>& ranks);

// Whether it is known to have called a collective between two looks. Pure.
bool GoesOn(const RankPicture& rank);

}  // namespace hlaunch
