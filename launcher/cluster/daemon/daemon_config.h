// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cluster/task_start/part_limits.h"
#include "launcher/cluster/task_start/user_entry.h"

namespace hlaunch {

// The settings in /etc/hlaunch/hlaunchd.conf, which this host's administrator makes. A value.
struct DaemonConfig {
  std::optional<int> slots;  // Workers without devices at the same time; unset: number of CPUs.
  std::vector<std::string> labels;  // What jobs can ask for with --constraint.
  std::string admin_group;          // Its members are administrators; empty: only root is one.
  UserRule rule;
  int max_parts = 256;  // How many parts of jobs run at the same time.
  PartLimits limits;    // The limits of each part.
  bool private_tmp = false;
};

// Returns the settings as --help prints them. Pure.
std::string DescribeDaemonConfig();

// Reads `text`, which has one line `name = value` for each setting. '#' begins a remark. Messages
// call the file `file`. Pure.
//
// Errors:
//   InvalidArgument - a line is wrong; the message names the file, the line and what would be
//       right.
absl::StatusOr<DaemonConfig> ParseDaemonConfig(absl::string_view text, absl::string_view file);

// The same for a file. A missing file is like an empty one. Errors: as above, and
//   InvalidArgument - the file exists and cannot be read.
absl::StatusOr<DaemonConfig> ReadDaemonConfig(const std::string& path);

}  // namespace hlaunch
