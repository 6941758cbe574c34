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

// Runs checks in a separate process, which is killed if it hangs. So a file server that is gone or
// a driver that sleeps never holds up the agent.
//
// Belongs to the loop thread. Destruction kills the process and does not call `done`.
class HealthHelper {
 public:
  // Starts `argv`, which prints a ToLine for each check as it ends. `done` is called once, from the
  // loop, as soon as no further result can come. It gets one result for each of `checks`, in their
  // order. A check that did not report in time, or before the process ended, is unknown, and its
  // reason says why.
  HealthHelper(asio::io_context& loop, const std::vector<std::string>& argv,
               std::vector<AwaitedCheck> checks,
               std::function<void(std::vector<CheckResult>)> done);
  ~HealthHelper();

 private:
  struct State;
  std::shared_ptr<State> state_;  // Shared with the loop's pending handlers.
};

}  // namespace hlaunch
