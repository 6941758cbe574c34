// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/devices/device_files.h"
#include "agent/health/local/check_result.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What the other nodes are told of `results`: what fails, in one line, and the figures that bear a
// check's name. Pure.
NodeHealth NodeHealthOf(const std::vector<CheckResult>& results, const std::string& hardware);

// What must be the same for two nodes to be compared: processors, kinds of accelerators and how
// many workers share them. "96 × Xeon 8380, Gaudi 2, 8 workers"
std::string HardwareName(const DeviceFiles& files, int nproc);

}  // namespace hlaunch
