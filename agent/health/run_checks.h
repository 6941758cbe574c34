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

// Which checks are to run. A value.
struct CheckPlan {
  std::string sysroot;        // A described machine: what tries this host is left out.
  std::string log_directory;  // Empty: not checked.
  std::string master;         // A host whose name must resolve; empty: not checked.
  DevicesWanted devices;
  bool full = false;               // Measures for up to two seconds instead of some milliseconds.
  std::optional<JointPlan> joint;  // Together with the other nodes of a round, last.
  Duration watch{};                // Again and again while workers run; zero: once.
};

// The checks of the plan, in the order in which people read them, and for how long to wait for
// each.
std::vector<AwaitedCheck> ChecksToAwait(const CheckPlan& plan);

// Runs them, all at once, and calls `tell` with each result as it comes, one at a time. A check
// that hangs holds up the return and no other check: run it where it can be killed, see
// HealthHelper.
void RunChecks(const CheckPlan& plan, const std::function<void(const CheckResult&)>& tell);

// The cheap ones of the same checks, made again and again. Each has a thread while it is made, so
// that one which hangs holds up no other. Belongs to one thread.
class RepeatedChecks {
 public:
  explicit RepeatedChecks(const CheckPlan& plan);

  // Makes those that do not hang since an earlier turn; returns when all have ended, or after
  // `limit`. What has not ended is a warning.
  std::vector<CheckResult> Take(Duration limit);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with the threads.
};

}  // namespace hlaunch
