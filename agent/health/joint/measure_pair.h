// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/health/joint/pair_plan.h"
#include "comm/process_group.h"

namespace hlaunch {

// Measures the network path between the two ranks of `group`, which stand for the nodes of `pair`.
// Both ranks call it. First, messages of a few bytes go back and forth. Then both ranks add up
// blocks of known numbers and verify every number of the sum, and each tells the other its digest.
// A block is as large as takes a few hundredths of a second, but at most as large as `test` says.
//
// A pair that does not finish within the group's timeout has failed; `group` must not be used
// afterwards.
PairResult MeasurePair(ProcessGroup& group, const NodePair& pair, const PairTest& test);

}  // namespace hlaunch
