// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <string>

#include "launcher/join/member_files.h"
#include "proto/base/clock.h"

// `hlaunch cluster status`: which cluster this host belongs to, and whether it reaches its head.

namespace hlaunch {

// A value.
struct ClusterStatus {
  bool member = false;
  bool is_head = false;
  bool daemon = false;      // hlaunchd runs here.
  bool connected = false;   // To the head.
  std::string host;         // Its name in the cluster; empty: nobody here says.
  std::string head;         // HOST:PORT; likewise.
  std::string version;      // hlaunchd's.
  std::string trouble;      // Why it is not connected, or hlaunchd does not answer, in words.
  std::time_t expires = 0;  // The certificate; 0: this user may not see it.
};

// Asks hlaunchd at its socket and looks at this host's files, as far as this user may.
ClusterStatus FindStatus(const ClusterPaths& paths, const std::string& socket, Duration patience);

// For people, and for programs: one object.
std::string StatusText(const ClusterStatus& status);
std::string StatusJson(const ClusterStatus& status);

// "2026-11-23 06:00 UTC". Pure.
std::string WallTimeOfMinute(std::time_t time);

}  // namespace hlaunch
