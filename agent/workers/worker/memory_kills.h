// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hlaunch {

// How often the kernel has killed for lack of memory: in this process' cgroup and below, and on the
// whole host. A value; a count is unset if the kernel does not tell it.
struct MemoryKills {
  std::optional<uint64_t> cgroup;
  std::optional<uint64_t> host;
  std::optional<uint64_t> limit_bytes;  // The tightest limit of the cgroup and those above it.
};

// Reads /proc/self/cgroup, /proc/vmstat and the cgroup's files (version 1 or 2) below `root`, which
// replaces "/".
MemoryKills ReadMemoryKills(const std::string& root = "");

// The same without the limits, which only the reading after a death has to have.
MemoryKills CountMemoryKills(const std::string& root = "");

struct KillVerdict {
  bool out_of_memory = false;
  std::string
      evidence;  // "the kernel killed it for lack of memory (the cgroup's limit is 2.0 GiB)"
};

// Explains a SIGKILL that hlaunch did not send, from the counts before the workers started and
// after the death. Pure.
KillVerdict ExplainKill(const MemoryKills& before, const MemoryKills& after);

}  // namespace hlaunch
