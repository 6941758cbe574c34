// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// The restarts of a job, as far as the next decision depends on them. A value; no instant is kept:
// who restores it counts from then.
struct RestartLog {
  std::vector<Instant> charged;       // When those were decided that count, the oldest first.
  int in_a_row = 0;                   // The last so many, each after less than kLongRun of work.
  bool free = false;                  // The last one was not charged.
  Duration pause = Duration::zero();  // Before the one that is decided and has not begun.
  Instant ran_since;                  // The workers of the latest round.
};

}  // namespace hlaunch
