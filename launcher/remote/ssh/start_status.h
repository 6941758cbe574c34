// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/remote/ssh/host_start.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A host and the progress of its start. A value.
struct HostProgress {
  std::string host;
  HostState state = HostState::kWaiting;
  std::string starter;
};

// How long no host has got further. A value.
struct StandStill {
  Duration lasted{};
  Duration limit{};  // Then the hosts that are awaited are given up.
};

// Returns a line as in "14 of 16 nodes are here; waiting for c9 (ssh connects), c12 (started, looks
// for the way here)". Names at most a few hosts, and tells of a long standstill. Pure.
std::string StartStatus(const std::vector<HostProgress>& hosts, const StandStill& still);

}  // namespace hlaunch
