// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hlaunch {

// How much memory this host has, in bytes. A value; unset if the kernel does not tell it.
struct HostMemory {
  std::optional<int64_t> whole;
  std::optional<int64_t> available;
};

// Reads /proc/meminfo below `root`, which replaces "/".
HostMemory ReadMemory(const std::string& root = "");

// Says why so many forks must not wait for a next round; empty if they may. Pure.
std::string WhyNoSpares(int forks, const HostMemory& memory);

}  // namespace hlaunch
