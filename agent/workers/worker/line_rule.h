// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"

// The user's rules for lines of the workers' output. Values.

namespace hlaunch {

// What happens to a worker that writes a matching line.
enum class LineAction {
  kMetric,  // Only the pattern's named groups are read.
  kWarn,    // The worker is also named in a message.
  kFail,    // The worker counts as failed: it is killed, and the restart policy decides the rest.
};

// The rule of --watch-log.
struct LineRule {
  std::string pattern;  // In RE2's syntax; may match anywhere in a line.
  LineAction action = LineAction::kWarn;
};

// The rule of --watch-log-silence: after a matching line the next one has to come within `limit`.
struct SilenceRule {
  std::string pattern;
  Duration limit = {};
};

}  // namespace hlaunch
