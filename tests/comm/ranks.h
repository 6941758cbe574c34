// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "comm/transport/transport.h"

namespace hlaunch {

// What a rank of a test holds.
struct TestRank {
  Transport& transport;
  std::function<void()> die;  // As if killed; where ranks are threads it returns.
  // Makes the group instead; once, and then the transport is not to be used.
  std::function<std::unique_ptr<ProcessGroup>(GroupOptions)> join;
};

// Runs `body` as each rank of a group and returns what they returned, by rank; "" for one that
// died.
using RankBody = std::function<std::string(TestRank&)>;

struct TransportKind {
  const char* name;
  std::vector<std::string> (*run)(int size, const RankBody& body);
};

std::vector<std::string> RunAsThreads(int size, const RankBody& body);
// The same, two to a host as far as they know.
std::vector<std::string> RunAsHosts(int size, const RankBody& body);
// Real processes, which find each other through a C10dServer; no other thread may run. The second
// copies large messages once and not twice, the third has TCP between them though they are on one
// host.
std::vector<std::string> RunAsProcesses(int size, const RankBody& body);
std::vector<std::string> RunWithSingleCopy(int size, const RankBody& body);
std::vector<std::string> RunWithTcp(int size, const RankBody& body);

inline const TransportKind kTransportKinds[] = {{"Loopback", RunAsThreads},
                                                {"Shm", RunAsProcesses},
                                                {"ShmSingleCopy", RunWithSingleCopy},
                                                {"Tcp", RunWithTcp}};

}  // namespace hlaunch
