// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/judge_stalls.h"

#include <algorithm>

namespace hlaunch {
namespace {

// If all workers here wait for others, how long the node of the cause has to report it.
constexpr Duration kPatience = std::chrono::seconds(45);

}  // namespace

StallVerdict JudgeStalls(const std::vector<StallFinding>& findings, Instant since, Instant now) {
  if (now < since + kStallSettle) return {since + kStallSettle, {}, false};
  const bool all_wait =
      std::none_of(findings.begin(), findings.end(),
                   [](const StallFinding& finding) { return finding.summary.waits_in.empty(); });
  if (findings.empty()) return {};
  if (all_wait && now < since + kPatience) return {since + kPatience, {}, false};
  StallVerdict verdict;
  verdict.cause_waits = all_wait;
  for (size_t i = 0; i < findings.size(); ++i) {
    if (!all_wait && !findings[i].summary.waits_in.empty()) continue;
    if (!verdict.cause || IsBehind(findings[i].stall, findings[*verdict.cause].stall)) {
      verdict.cause = i;
    }
  }
  return verdict;
}

}  // namespace hlaunch
