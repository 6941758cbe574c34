// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/health/local/check_result.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Runs checks in a process of their own, which is killed if it hangs: a file server that is gone
// or a driver that sleeps never holds up the agent.
//
// Belongs to the loop thread. Destruction kills the process and gives up without a word.
class HealthHelper {
 public:
  // Starts `argv`, which prints a ToLine for each of the checks as it ends. `done` is called once,
  // from the loop, as soon as nothing more is awaited, with a result for each of them in their
  // order: those that did not come in time, or before the process ended, are unknown, with why.
  HealthHelper(asio::io_context& loop, const std::vector<std::string>& argv,
               std::vector<AwaitedCheck> checks,
               std::function<void(std::vector<CheckResult>)> done);
  ~HealthHelper();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with what is under way in the loop.
};

}  // namespace hlaunch
