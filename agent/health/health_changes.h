// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/local/check_result.h"

namespace hlaunch {

// Decides what to report when the same checks run again and again: each change once, and nothing
// that comes and goes. Values and state; no clock, no I/O.
//
// The first result of a check is the baseline: what was bad then has been reported already. A later
// result that fails is reported at once. A result that is only worse is reported in the second turn
// that finds it, and a return to the baseline in the third. A check that counts events is reported
// when its count has grown, and again whenever the growth has doubled. An unknown result changes
// nothing.
class HealthChanges {
 public:
  // Takes the results of one turn. Returns what is to be reported: the result as it was found, or
  // ok if the check is back at its baseline. The reason says what happened in either case.
  std::vector<CheckResult> Take(const std::vector<CheckResult>& results);

 private:
  struct Seen {
    CheckState first = CheckState::kOk;
    std::optional<double> first_value;
    bool told = false;
    int turns = 0;       // Consecutive turns that contradict `told`.
    double grown = 0;    // For counts: growth since the first turn.
    double last = 0;     // The value in the last turn.
    double tell_at = 1;  // The growth that is reported next.
  };
  static std::optional<CheckResult> TakeCount(const CheckResult& result, Seen& seen);
  static std::optional<CheckResult> TakeState(CheckResult result, Seen& seen);

  std::map<std::string, Seen> seen_;
};

}  // namespace hlaunch
