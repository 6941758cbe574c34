// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "rendezvous/hang/attribute_hang.h"

namespace hlaunch {

// What a rank does instead of going on: "is stopped (state T)", "stands in load (loader.py:88)".
// Pure.
std::string DescribeRank(const RankPicture& rank);

// Who waits where, in a line, and a line for each rank that holds them up. Empty: nobody waits.
// Pure.
std::string DescribeStandstill(const HangVerdict& verdict, const std::vector<RankPicture>& ranks);

// The hang as a person is told of it, after `age`: the same with the time before it. Pure.
std::string DescribeHang(const HangVerdict& verdict, const std::vector<RankPicture>& ranks,
                         Duration age);

// Why `rank` is taken for the cause, in one line: "hangs: it has not come to all_reduce number 4 of
// default_pg for 75 s: it stands in load (loader.py:88)". Pure.
std::string DescribeCulprit(const HangVerdict& verdict, const std::vector<RankPicture>& ranks,
                            Rank rank, Duration age);

// The culprits that have not ended; where there are none, one of those that wait: it takes a
// restart to get them out. Pure.
std::vector<Rank> RanksToFail(const HangVerdict& verdict, const std::vector<RankPicture>& ranks);

}  // namespace hlaunch
