// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/health/local/check_result.h"
#include "agent/workers/process/line_process.h"

namespace hlaunch {

// Runs a separate process that watches this node's health while its workers run, see WatchNode.
//
// Belongs to the loop thread. Destruction kills the process and calls nothing.
class HealthWatch {
 public:
  // Starts `argv`, which prints a ToLine for each change. `tell` is called from the loop with each
  // change, and with a warning if the process ends by itself. `tell` must not destroy the watch.
  HealthWatch(asio::io_context& loop, const std::vector<std::string>& argv,
              const std::function<void(const CheckResult&)>& tell);

  // Call when the workers of this node have succeeded; workers of other nodes may still run.
  void Finished() { process_.CloseInput(); }

  pid_t pid() const { return process_.pid(); }  // 0 once the process has ended.

 private:
  LineProcess process_;
};

}  // namespace hlaunch
