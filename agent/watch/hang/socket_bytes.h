// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <linux/inet_diag.h>
#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
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

// All TCP connections of this host at one moment. A value.
class HostConnections {
 public:
  // Empty if the kernel does not tell. Takes a few milliseconds if the host has thousands of
  // connections.
  static HostConnections Read();

  // What those of these processes have done.
  SocketUse Of(const std::vector<pid_t>& pids) const;

 private:
  struct Connection {
    inet_diag_msg head;
    uint64_t bytes = 0;
  };
  void Add(const char* data, size_t size);
  bool Take(const char* data, size_t size);

  std::unordered_map<uint32_t, Connection> connections_;  // By the inode of the socket.
};

// Reads them for these processes alone.
SocketUse ReadSockets(const std::vector<pid_t>& pids);

// As ReadSockets tells of one connection: `timer` and `retransmits` are of the kernel's
// inet_diag_msg. A peer that is alive and does not read is asked by another timer. Pure.
bool IsUnheard(int timer, int retransmits);

}  // namespace hlaunch
