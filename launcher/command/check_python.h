// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/health/local/check_result.h"
#include "agent/workers/process/tool_run.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Finds the Python that runs scripts on this host and asks it for its version and for that of
// torch. torch is not imported, since that takes seconds and may load a device's driver.
//
// Belongs to the loop thread. The destructor ends the question and does not call `done`.
class PythonCheck {
 public:
  // Starts the question; `done` is called once, here or from the loop.
  PythonCheck(asio::io_context& loop, const Environment& environment,
              std::function<void(CheckResult)> done);

 private:
  std::optional<ToolRun> question_;
};

// Says what `python` has answered. Pure.
CheckResult PythonResult(const std::string& python, const ToolOutput& answer);

}  // namespace hlaunch
