// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/health/local/check_result.h"
#include "agent/health/run_checks.h"

// `hlaunch check`: its command line, and what it prints. Pure.

namespace hlaunch {

struct CheckOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  CheckPlan plan;
  bool json = false;
  bool lines = false;  // Runs the checks in this process, and prints each as it ends.
};

// Requires: the command line begins with `check`.
//
// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<CheckOptions> ParseCheckOptions(int argc, const char* const* argv);

// The words with which `program` runs `plan` in a process of its own.
std::vector<std::string> CheckCommand(const std::string& program, const CheckPlan& plan);

// For people: a table, and advice where something is wrong.
std::string CheckText(const std::vector<CheckResult>& results);

// The same for programs: one object.
std::string CheckJson(const std::vector<CheckResult>& results);

}  // namespace hlaunch
