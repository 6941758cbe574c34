// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// The restarts of a job, as far as the next decision depends on them. A value; its instants are not
// stored: after a restore they are the time of the restore.
struct RestartLog {
  std::vector<Instant> charged;  // When each restart that counts was decided, oldest first.
  // This many last restarts each came after less than kLongRun of work.
  int in_a_row = 0;
  bool free = false;                  // The last restart was not charged.
  Duration pause = Duration::zero();  // Before a restart that is decided but has not begun.
  Instant ran_since;                  // When the workers of the latest round started.
};

}  // namespace hlaunch
