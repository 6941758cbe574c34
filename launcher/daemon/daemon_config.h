// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/part_start/part_limits.h"
#include "launcher/part_start/user_entry.h"

namespace hlaunch {

// /etc/hlaunch/hlaunchd.conf: what this host's administrator has decided. A value.
struct DaemonConfig {
  std::optional<int> slots;         // Workers without devices at the same time; unset: its CPUs.
  std::vector<std::string> labels;  // For --constraint.
  std::string admin_group;          // Its members are administrators; empty: root alone is.
  UserRule rule;
  int max_parts = 256;  // Parts of jobs at the same time.
  PartLimits limits;    // Of each of them.
  bool private_tmp = false;
};

// Its settings as --help has them. Pure.
std::string DescribeDaemonConfig();

// Reads `text`, a line `name = value` for each; '#' begins a remark. `file` is how messages name
// it. Pure.
//
// Errors:
//   InvalidArgument - a line is wrong; the message names the file, the line and what would be
//   right.
absl::StatusOr<DaemonConfig> ParseDaemonConfig(absl::string_view text, absl::string_view file);

// The same of a file; one that is not there says nothing. Errors: as above, and
//   InvalidArgument - it is there and cannot be read.
absl::StatusOr<DaemonConfig> ReadDaemonConfig(const std::string& path);

}  // namespace hlaunch
