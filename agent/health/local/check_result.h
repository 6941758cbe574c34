// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Ordered from good to bad. A check that cannot run says nothing against its node: it is unknown.
enum class CheckState { kOk, kUnknown, kWarn, kFail };

// "ok", "unknown", "warn", "fail"
const char* StateName(CheckState state);

// What one check of a node found. A value.
struct CheckResult {
  std::string name;             // The name of the check: "pcie links".
  std::optional<double> value;  // The measured value.
  std::string unit;             // Unit of the value; empty for a plain number.
  CheckState state = CheckState::kOk;
  std::string reason;       // What was seen, in one line; empty if the value says it all.
  std::string advice;       // What to do about it; set for kWarn and kFail.
  std::string detail = {};  // For programs: one JSON object, or empty.
};

// A check and how long to wait for its result.
struct AwaitedCheck {
  std::string name;
  Duration limit{};
};

// The worst state in `results`; kOk if there are none.
CheckState WorstOf(const std::vector<CheckResult>& results);

// A result as one line of JSON, for a process that waits for it.
std::string ToLine(const CheckResult& result);
// Nothing if `line` is not a result.
std::optional<CheckResult> FromLine(absl::string_view line);

}  // namespace hlaunch
