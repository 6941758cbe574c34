// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/joint/joint_check.h"
#include "agent/health/local/check_result.h"
#include "agent/health/local/machine_checks.h"

namespace hlaunch {

// The checks to run. A value.
struct CheckPlan {
  std::string sysroot;        // Of a described machine: no check then tries this host.
  std::string log_directory;  // Not checked if empty.
  std::string master;         // A host whose name must resolve; not checked if empty.
  DevicesWanted devices;
  bool full = false;               // Measures for up to two seconds instead of some milliseconds.
  std::optional<JointPlan> joint;  // The joint check with the other nodes of a round; it runs last.
  Duration watch{};                // The interval while workers run; zero runs the checks once.
};

// Returns the checks of the plan, in the order in which people read them, each with how long to
// wait for it.
std::vector<AwaitedCheck> ChecksToAwait(const CheckPlan& plan);

// Runs the checks, all at once, and calls `tell` with each result as it comes, one at a time. A
// check that hangs delays the return, but no other check: call this where it can be killed, see
// HealthHelper.
void RunChecks(const CheckPlan& plan, const std::function<void(const CheckResult&)>& tell);

// The cheap ones of the same checks, run again and again. Each check runs in a thread of its own,
// so a check that hangs holds up no other. Belongs to one thread.
class RepeatedChecks {
 public:
  explicit RepeatedChecks(const CheckPlan& plan);

  // Runs the checks, except those that still hang since an earlier turn. Returns when all have
  // ended, or after `limit`. A check that has not ended is reported as a warning.
  std::vector<CheckResult> Take(Duration limit);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with the checks' threads.
};

}  // namespace hlaunch
