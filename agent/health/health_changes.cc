// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/health_changes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rendezvous/round/values/figures.h"

namespace hlaunch {
namespace {

constexpr int kWorseTurns = 2;
constexpr int kGoodTurns = 3;

// Checks whose value counts events.
constexpr absl::string_view kCounts[] = {"pcie errors", "kernel log", "link losses"};

bool IsCount(const std::string& name) {
  return std::find(std::begin(kCounts), std::end(kCounts), name) != std::end(kCounts);
}

// True for figures that are the same on all nodes of a kind, and that never change on one node.
bool IsConstant(const std::string& name) {
  for (size_t f = 0; f < kFigures; ++f) {
    const FigureRule& rule = RuleOf(static_cast<Figure>(f));
    if (name == rule.name) return rule.scale == Scale::kCounted;
  }
  return false;
}

}  // namespace

std::vector<CheckResult> HealthChanges::Take(const std::vector<CheckResult>& results) {
  std::vector<CheckResult> told;
  for (const CheckResult& result : results) {
    if (result.state == CheckState::kUnknown) continue;
    const auto [it, is_first] = seen_.try_emplace(result.name);
    Seen& seen = it->second;
    if (is_first) {
      seen.first = result.state;
      seen.first_value = result.value;
      seen.last = result.value.value_or(0);
      continue;
    }
    auto change = IsCount(result.name) ? TakeCount(result, seen) : TakeState(result, seen);
    if (change) told.push_back(*std::move(change));
  }
  return told;
}

std::optional<CheckResult> HealthChanges::TakeCount(const CheckResult& result, Seen& seen) {
  const double value = result.value.value_or(seen.last);
  seen.grown += std::max(0.0, value - std::exchange(seen.last, value));
  if (seen.grown < seen.tell_at) return {};
  seen.tell_at = 2 * seen.grown;
  CheckResult change = result;
  change.state = std::max(result.state, CheckState::kWarn);
  change.reason = absl::StrCat(seen.grown, " more since the workers started",
                               result.reason.empty() ? "" : ": ", result.reason);
  return change;
}

std::optional<CheckResult> HealthChanges::TakeState(CheckResult result, Seen& seen) {
  if (IsConstant(result.name) && result.value < seen.first_value) {
    result.state = std::max(result.state, CheckState::kWarn);
    result.reason = absl::StrCat(result.value.value_or(0), result.unit.empty() ? "" : " ",
                                 result.unit, " where there were ", *seen.first_value,
                                 result.reason.empty() ? "" : ": ", result.reason);
  }
  const bool worse = result.state > seen.first;
  seen.turns = worse == seen.told ? 0 : seen.turns + 1;
  const bool failed = result.state == CheckState::kFail;
  const int turns = !worse ? kGoodTurns : failed ? 1 : kWorseTurns;
  if (seen.turns < turns) return {};
  seen.turns = 0;
  seen.told = worse;
  if (!worse) {
    result.state = CheckState::kOk;
    result.reason = "as at first again";
    result.advice.clear();
  }
  return result;
}

}  // namespace hlaunch
