// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace hlaunch {

// What each part of a job may use of this host at most, by hlaunchd.conf, in the words of systemd.
// A value; unset: there is no such limit.
struct PartLimits {
  std::optional<uint64_t> memory_max;  // Bytes.
  std::optional<uint64_t> tasks_max;   // Processes and threads.
  std::optional<uint64_t> cpu_quota;   // Percent of one CPU.

  bool operator==(const PartLimits&) const = default;
};

// The limits as properties of a unit of systemd: a name, a type and a value each, as busctl takes
// them. Pure.
std::vector<std::string> ScopeProperties(const PartLimits& limits);

// Holds this process, which has entered the group of `job`, and all that it starts to `limits`: in
// control groups that are made here, unless systemd has limited `scope`, its unit. Needs root.
//
// Errors:
//   ResourceExhausted - it cannot be held to one of them; the message names that.
absl::Status HoldToLimits(uint64_t job, const std::string& scope, const PartLimits& limits);

// Removes groups that HoldToLimits has made. False: one is not empty yet.
bool RemoveLimits(uint64_t job);

}  // namespace hlaunch
