// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/round/hang/attribute_hang.h"

namespace hlaunch {

// Returns what a rank does instead of going on: "is stopped (state T)", "stands in load
// (loader.py:88)". Pure.
std::string DescribeRank(const RankSnapshot& rank);

// Returns a line that says which ranks wait where, a line for each rank that holds them up, and one
// for each pair of hosts of which one acknowledges nothing that the other sends. Empty if no rank
// waits. Pure.
std::string DescribeStandstill(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks);

// Returns what people are told of the hang: its `age`, and if only a part of the ranks stands
// still, then DescribeStandstill. Unless `whole`, the job has ranks besides, which go on as far as
// is known. Pure.
std::string DescribeHang(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks,
                         Duration age, bool whole = true);

// Returns why `rank` is taken for the cause, in one line: "hangs: it has not come to all_reduce
// number 4 of default_pg for 75 s: it stands in load (loader.py:88)". Pure.
std::string DescribeCulprit(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks,
                            Rank rank, Duration age);

// Returns the culprits that have not ended, but none for which a process that it started works. If
// all have exited with 0, or none is to blame, returns one of the ranks that wait, since only a
// restart can free them. Pure.
std::vector<Rank> RanksToFail(const HangVerdict& verdict, const std::vector<RankSnapshot>& ranks);

}  // namespace hlaunch
