// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace hlaunch {

// What the TCP connections of processes have done so far. A value.
struct SocketUse {
  // Received and sent by the open ones, those that processes share counted once. It falls when a
  // connection is closed.
  uint64_t bytes = 0;
  std::set<std::string> addresses;  // Of this host, that they use; without loopback.
  std::set<std::string> unheard;    // Addresses from which for seconds nothing was acknowledged.
};

// Empty if the kernel does not tell. Takes a few milliseconds if the host has thousands of
// connections.
SocketUse ReadSockets(const std::vector<pid_t>& pids);

// As ReadSockets tells of one connection: `timer` and `retransmits` are of the kernel's
// inet_diag_msg. A peer that is alive and does not read is asked by another timer. Pure.
bool IsUnheard(int timer, int retransmits);

}  // namespace hlaunch
