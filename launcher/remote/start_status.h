// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "launcher/remote/host_start.h"

namespace hlaunch {

// A host and the progress of its start. A value.
struct HostProgress {
  std::string host;
  HostState state = HostState::kWaiting;
  std::string starter;
};

// Returns a line as in "14 of 16 nodes are here; waiting for c9 (ssh connects), c12 (started, looks
// for the way here)". Names at most a few hosts. Pure.
std::string StartStatus(const std::vector<HostProgress>& hosts);

}  // namespace hlaunch
