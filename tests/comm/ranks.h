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

// What the body of a test rank gets.
struct TestRank {
  Transport& transport;
  std::function<void()> die;  // Dies as if killed. It returns where ranks are threads.
  // Makes a group instead of using the transport. Call it once; do not use `transport` afterwards.
  std::function<std::unique_ptr<ProcessGroup>(GroupOptions)> join;
};

// The body that each rank of a group runs. The functions below return the results by rank, "" for a
// rank that died.
using RankBody = std::function<std::string(TestRank&)>;

struct TransportKind {
  const char* name;
  std::vector<std::string> (*run)(int size, const RankBody& body);
};

std::vector<std::string> RunAsThreads(int size, const RankBody& body);
// Runs threads that take themselves for two ranks per host.
std::vector<std::string> RunAsHosts(int size, const RankBody& body);
// Run real processes, which find each other through a C10dServer; no other thread may run. The
// second copies large messages once instead of twice. The third uses TCP though all ranks are on
// one host.
std::vector<std::string> RunAsProcesses(int size, const RankBody& body);
std::vector<std::string> RunWithSingleCopy(int size, const RankBody& body);
std::vector<std::string> RunWithTcp(int size, const RankBody& body);

inline const TransportKind kTransportKinds[] = {{"Loopback", RunAsThreads},
                                                {"Shm", RunAsProcesses},
                                                {"ShmSingleCopy", RunWithSingleCopy},
                                                {"Tcp", RunWithTcp}};

}  // namespace hlaunch
