// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/health/local/check_result.h"
#include "agent/process/line_process.h"

namespace hlaunch {

// Has a process of its own watch this node's health while its workers run, see WatchNode.
//
// Belongs to the loop thread. Destruction kills the process and gives up without a word.
class HealthWatch {
 public:
  // Starts `argv`, which prints a ToLine for each change. `tell` is called from the loop with each
  // of them, and, if the process ends by itself, with a warning to say so; it may not destroy the
  // watch.
  HealthWatch(asio::io_context& loop, const std::vector<std::string>& argv,
              const std::function<void(const CheckResult&)>& tell);

  // The workers of this node have succeeded; those of others may go on.
  void Finished() { process_.CloseInput(); }

  pid_t pid() const { return process_.pid(); }  // 0: it does not live.

 private:
  LineProcess process_;
};

}  // namespace hlaunch
