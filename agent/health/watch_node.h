// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>

#include "agent/health/joint/joint_watch.h"
#include "agent/health/local/check_result.h"
#include "agent/health/run_checks.h"

namespace hlaunch {

// These two compare a node with the others, as checks that HealthChanges can follow. Pure.
//
// "slower than other nodes": a warning if this node's processor time `own`, in ms, is so many times
// the mean of the others that the preflight would call it bad. `said` is what this node said in the
// turn; NaN if it left itself out.
CheckResult ComparePace(const JointTurn& turn, double said, double own);
// "the end": a warning if more than half of the nodes have finished and this one has not.
CheckResult CompareEnd(const JointTurn& turn, int size, bool finished);

// The line for JointWatch::AddNews that tells `change`: without detail, and with reason and advice
// cut so that it fits. Pure.
std::string NewsLine(CheckResult change);

// Runs the checks of `plan` every `plan.watch`, compares this node with the other nodes if there
// are any, and tells each change as a result. Node rank 0 also tells the changes of other nodes;
// their names begin with the name of the node. `input` ends when this node's workers have
// succeeded.
//
// Never returns: this runs in a process of its own, which is killed.
[[noreturn]] void WatchNode(const CheckPlan& plan, int input,
                            const std::function<void(const CheckResult&)>& tell);

}  // namespace hlaunch
