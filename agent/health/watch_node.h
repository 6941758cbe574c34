// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>

#include "agent/health/joint/joint_watch.h"
#include "agent/health/local/check_result.h"
#include "agent/health/run_checks.h"

namespace hlaunch {

// How a node stands beside the others, as checks that HealthChanges can follow. Pure.
//
// "slower than other nodes": its processor takes `own` ms, so many times the mean of the others
// that the preflight would call it bad. `said` is what it said in the turn: NaN if it left itself
// out.
CheckResult ComparePace(const JointTurn& turn, double said, double own);
// "the end": more than half of the nodes have finished, and this one has not.
CheckResult CompareEnd(const JointTurn& turn, int size, bool finished);

// Makes the checks of `plan` every `plan.watch`, compares them with those of the other nodes if
// there are any, and tells what changes, each as a result. Of other nodes, whose names precede the
// check's, node rank 0 is told. `input` ends when this node's workers have succeeded.
//
// Returns never: it is a process of its own that is killed.
[[noreturn]] void WatchNode(const CheckPlan& plan, int input,
                            const std::function<void(const CheckResult&)>& tell);

}  // namespace hlaunch
