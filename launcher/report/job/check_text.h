// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/health/local/check_result.h"
#include "agent/health/run_checks.h"

// The command line and the output of `hlaunch check`. Pure.

namespace hlaunch {

struct CheckOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  CheckPlan plan;
  bool json = false;
  bool lines = false;  // Run the checks in this process, and print each result at once.
};

// Requires: the command line begins with `check`.
//
// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<CheckOptions> ParseCheckOptions(int argc, const char* const* argv);

// Returns the command line with which `program` runs `plan` in a process of its own.
std::vector<std::string> CheckCommand(const std::string& program, const CheckPlan& plan);

// Returns text for people: a table, and advice if something is wrong.
std::string CheckText(const std::vector<CheckResult>& results);

// The same for programs, as one JSON object.
std::string CheckJson(const std::vector<CheckResult>& results);

}  // namespace hlaunch
