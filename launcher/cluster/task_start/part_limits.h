// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hlaunch {

// The most that each part of a job may use of this host, from hlaunchd.conf, in the terms of
// systemd. A value. Unset: no such limit.
struct PartLimits {
  std::optional<uint64_t> memory_max;  // Bytes.
  std::optional<uint64_t> tasks_max;   // Processes and threads.
  std::optional<uint64_t> cpu_quota;   // Percent of one CPU.

  bool operator==(const PartLimits&) const = default;
};

// Returns the limits as properties of a systemd unit. Each is a name, a type and a value, as busctl
// takes them. Pure.
std::vector<std::string> ScopeProperties(const PartLimits& limits);

// Applies `limits` to this process, which has entered the group of `job`, and to all that it
// starts. If systemd has set a limit on `scope`, its unit, that is enough. Else this function makes
// control groups. Needs root.
//
// Errors:
//   ResourceExhausted - a limit cannot be applied; the message names it.
absl::Status HoldToLimits(uint64_t job, const std::string& scope, const PartLimits& limits);

// Removes the groups that HoldToLimits has made. Returns false if one is not empty yet.
bool RemoveLimits(uint64_t job);

}  // namespace hlaunch
