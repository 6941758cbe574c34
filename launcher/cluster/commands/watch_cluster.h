// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hlaunch {

// Show what `hlaunch top` shows, about once a second until q or Ctrl-C. WatchCluster shows the
// hosts and this user's jobs, or all users' jobs with `all`. WatchClusterJob shows one job until it
// has ended. If a daemon or a head is away, the screen says so. Both return the exit code.
int WatchCluster(const std::string& socket, bool all);
int WatchClusterJob(const std::string& socket, uint64_t job);

}  // namespace hlaunch
