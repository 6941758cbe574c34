// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "agent/stall/heartbeats.h"
#include "agent/stall/stack_text.h"
#include "proto/base/clock.h"

namespace hlaunch {

// What was found of a worker that has stalled. A value.
struct StallFinding {
  Stall stall;
  StackSummary summary;  // Empty: no stacks could be had.
};

// Which of the stalled workers is taken for the cause. A value.
struct StallVerdict {
  std::optional<Instant> wait_until;  // It is too early to say; unset: it is not.
  std::optional<size_t> cause;  // The index of the finding; unset: too early, or there is none.
  bool cause_waits = false;     // Each of them waits for others, this one too.
};

// Workers that wait for a stalled one stall themselves, a moment before or after it.
inline constexpr Duration kStallSettle = std::chrono::seconds(2);

// Decides at `now` which of `findings`, whose first worker stalled at `since`, is the cause: the
// one which does not wait for others by its stacks, and of several the one that is furthest behind.
// Where all of them wait the cause may be on another node, which has some time to say so. Pure.
StallVerdict JudgeStalls(const std::vector<StallFinding>& findings, Instant since, Instant now);

}  // namespace hlaunch
