// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

// The command lines of `hlaunch attach`, `logs`, `stop` and `kill`. All is pure.

namespace hlaunch {

// The options as read. A value.
struct DetachedOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  std::string job_id;                        // Empty: the only one.
  std::optional<size_t> tail;                // Unset: all lines.
  bool follow = false;
  bool timestamps = false;
  bool json = false;
  std::vector<Rank> ranks;        // In ascending order; none: all lines.
  std::string node;               // A host or node rank of a cluster's job; empty: all.
  std::string since;              // As typed, see ReadSince; empty: all lines.
  std::optional<Duration> grace;  // Unset: the job's own grace.
};

// Errors:
//   InvalidArgument - one line that names the option, the value and how to fix it.
absl::StatusOr<DetachedOptions> ParseAttachOptions(int argc, const char* const* argv);
absl::StatusOr<DetachedOptions> ParseLogsOptions(int argc, const char* const* argv);
absl::StatusOr<DetachedOptions> ParseStopOptions(int argc, const char* const* argv);
// Sets the grace to zero.
absl::StatusOr<DetachedOptions> ParseKillOptions(int argc, const char* const* argv);

}  // namespace hlaunch
