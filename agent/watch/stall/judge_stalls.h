// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "agent/watch/stall/heartbeats.h"
#include "agent/watch/stall/stack_text.h"
#include "proto/base/clock.h"

namespace hlaunch {

// What was found about a stalled worker. A value.
struct StallFinding {
  Stall stall;
  StackSummary summary;  // Empty if no stacks could be collected.
};

// The verdict: which stalled worker caused the others to stall. A value.
struct StallVerdict {
  std::optional<Instant> wait_until;  // Set if it is too early to decide: judge again then.
  // Index of the finding; unset if it is too early or there are no findings.
  std::optional<size_t> cause;
  bool cause_waits = false;  // Every stalled worker waits for others, the cause too.
};

// Workers that wait for a stalled worker stall as well, a moment before or after it.
inline constexpr Duration kStallSettle = std::chrono::seconds(2);

// Decides at `now` which of `findings`, whose first worker stalled at `since`, is the cause: a
// worker whose stacks do not show it waiting for others, and of several such workers the one that
// is furthest behind. If all of them wait, the cause may be on another node, which gets some time
// to report it. Pure.
StallVerdict JudgeStalls(const std::vector<StallFinding>& findings, Instant since, Instant now);

}  // namespace hlaunch
