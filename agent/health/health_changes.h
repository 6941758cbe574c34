// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/local/check_result.h"

namespace hlaunch {

// What is worth a word when the same checks are made again and again: each thing once, and not at
// all if it comes and goes. Values and state; no clock, no I/O.
//
// The first result of a check is what the later ones are measured by: what was bad then has been
// told already. Failed, it is told at once; only worse, in the second turn that finds it so; as at
// first, in the third. What counts events is told when it has grown, and again whenever it has
// doubled since. What is unknown changes nothing.
class HealthChanges {
 public:
  // Takes the results of one turn. Returns what is to be told: as it was found, or ok if the check
  // is as at first again; the reason says what, in any case.
  std::vector<CheckResult> Take(const std::vector<CheckResult>& results);

 private:
  struct Seen {
    CheckState first = CheckState::kOk;
    std::optional<double> first_value;
    bool told = false;
    int turns = 0;       // In a row in which `told` was not the case.
    double grown = 0;    // Counts: since the first turn,
    double last = 0;     // by the last,
    double tell_at = 1;  // and from when on it is told.
  };
  static std::optional<CheckResult> TakeCount(const CheckResult& result, Seen& seen);
  static std::optional<CheckResult> TakeState(CheckResult result, Seen& seen);

  std::map<std::string, Seen> seen_;
};

}  // namespace hlaunch
