// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <string>

#include "launcher/cluster/membership/member_files.h"
#include "proto/base/clock.h"

// `hlaunch cluster status`: which cluster this host belongs to, and whether it reaches the head.

namespace hlaunch {

// What `hlaunch cluster status` shows. A value.
struct ClusterStatus {
  bool member = false;
  bool is_head = false;
  bool daemon = false;      // hlaunchd runs here.
  bool connected = false;   // hlaunchd is connected to the head.
  std::string host;         // This host's name in the cluster; empty: unknown.
  std::string head;         // HOST:PORT; empty: unknown.
  std::string version;      // The version of hlaunchd.
  std::string trouble;      // Why hlaunchd is not connected or does not answer.
  std::time_t expires = 0;  // End of the certificate; 0: this user may not see it.
};

// Asks hlaunchd at its socket, and reads this host's files as far as this user may.
ClusterStatus FindStatus(const ClusterPaths& paths, const std::string& socket, Duration patience);

// The status for people, and as one JSON object for programs.
std::string StatusText(const ClusterStatus& status);
std::string StatusJson(const ClusterStatus& status);

// The time as in "2026-11-23 06:00 UTC". Pure.
std::string WallTimeOfMinute(std::time_t time);

}  // namespace hlaunch
