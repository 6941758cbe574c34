// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace hlaunch {

// A process that listens on a port. A value.
struct PortOwner {
  pid_t pid = 0;
  std::string name;  // As in ps, safe to print: "python3".
};

// Returns a process that listens on TCP port `port` of this host; unset if there is none, or if it
// is another user's and this process may not see that.
std::optional<PortOwner> FindPortOwner(uint16_t port);

// Whether the process is one of hlaunch's, by its name.
bool IsHlaunch(const PortOwner& owner);

}  // namespace hlaunch
