// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// The systemd units of a cluster's daemons.

namespace hlaunch {

inline constexpr char kDaemonUnit[] = "hlaunchd.service";
inline constexpr char kHeadUnit[] = "hlaunch-head.service";

// Whether systemd is the init of this machine.
bool SystemdRuns();

// Runs systemctl with `what`, as in {"enable", "--now"}, on the units. Blocks up to two minutes.
//
// Errors:
//   Unavailable - it failed; the message tells what systemctl said and how to go on.
absl::Status AskSystemd(const std::vector<std::string>& what,
                        const std::vector<std::string>& units);

// Writes the drop-in with which the head's unit listens at `listen`. `units` is the folder of
// units.
//
// Errors:
//   Unavailable - it cannot be written.
absl::Status WriteListenDropIn(const std::string& units, const std::string& listen);
// Removes the drop-in. Returns whether it existed.
//
// Errors:
//   Unavailable - it cannot be removed.
absl::StatusOr<bool> RemoveListenDropIn(const std::string& units);

}  // namespace hlaunch
