// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// The worse, the later. A check that cannot run says nothing against its node: it is unknown.
enum class CheckState { kOk, kUnknown, kWarn, kFail };

// "ok", "unknown", "warn", "fail"
const char* StateName(CheckState state);

// What one check of a node found. A value.
struct CheckResult {
  std::string name;             // Of the check: "pcie links".
  std::optional<double> value;  // What was measured,
  std::string unit;             // in this unit; empty: a number.
  CheckState state = CheckState::kOk;
  std::string reason;       // What was seen, in one line; empty: the value says it all.
  std::string advice;       // What to do about it; set for kWarn and kFail.
  std::string detail = {};  // For programs: one JSON object, or empty.
};

// A check whose result is waited for, so long.
struct AwaitedCheck {
  std::string name;
  Duration limit{};
};

// The worst of them; kOk if there are none.
CheckState WorstOf(const std::vector<CheckResult>& results);

// A result as one line of JSON, for whoever waits for it in another process.
std::string ToLine(const CheckResult& result);
// Nothing if `line` is none.
std::optional<CheckResult> FromLine(absl::string_view line);

}  // namespace hlaunch
