// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/health/joint/pair_plan.h"
#include "comm/process_group.h"

namespace hlaunch {

// Measures the way between the two ranks of `group`, which stand for the nodes of `pair`: both call
// it. Messages of a few bytes go there and back; then both add blocks of known numbers together and
// look at every number of the sum, and each tells the other what it came to. Blocks are as large as
// take a few hundredths of a second each, and at most as `test` says.
//
// What cannot be done within the group's time-out has failed; `group` may not be used afterwards.
PairResult MeasurePair(ProcessGroup& group, const NodePair& pair, const PairTest& test);

}  // namespace hlaunch
