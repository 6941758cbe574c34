// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hlaunch {

// What `hlaunch top` shows, about once a second until q or Ctrl-C: the jobs, of all users with
// `all`, and the hosts; or one job, until it has ended. A daemon or a head that is away is shown as
// that. Returns the exit code.
int WatchCluster(const std::string& socket, bool all);
int WatchClusterJob(const std::string& socket, uint64_t job);

}  // namespace hlaunch
