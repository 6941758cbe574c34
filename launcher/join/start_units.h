// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The units of a cluster's daemons, where systemd runs.

namespace hlaunch {

inline constexpr char kDaemonUnit[] = "hlaunchd.service";
inline constexpr char kHeadUnit[] = "hlaunch-head.service";

// Whether systemd is this machine's init.
bool SystemdRuns();

// Has systemd do that with the units: {"enable", "--now"}. Blocks up to two minutes.
//
// Errors:
//   Unavailable - it did not; the message says what systemctl said, and how to go on.
absl::Status AskSystemd(const std::vector<std::string>& what,
                        const std::vector<std::string>& units);

// Writes the drop-in of the head's unit by which it listens at `listen`, in the folder of units.
//
// Errors:
//   Unavailable - it cannot be written.
absl::Status WriteListenDropIn(const std::string& units, const std::string& listen);
// Removes it. Whether it was there.
//
// Errors:
//   Unavailable - it cannot be removed.
absl::StatusOr<bool> RemoveListenDropIn(const std::string& units);

}  // namespace hlaunch
