// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"

// What lines of the workers' output mean, as the user says. Values.

namespace hlaunch {

// What becomes of a worker that writes a line with the pattern.
enum class LineAction {
  kMetric,  // Only the pattern's named groups are read.
  kWarn,    // It is named as well.
  kFail,    // It has failed: it is killed, and what follows is the restart policy's.
};

// Of --watch-log.
struct LineRule {
  std::string pattern;  // In RE2's syntax; it is looked for anywhere in a line.
  LineAction action = LineAction::kWarn;
};

// Of --watch-log-silence: once a line with the pattern has come, the next one comes within `limit`.
struct SilenceRule {
  std::string pattern;
  Duration limit = {};
};

}  // namespace hlaunch
