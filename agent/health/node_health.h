// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/health/local/check_result.h"
#include "agent/machine/devices/device_files.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// Sums up `results` for the other nodes: what fails, in one line, and the figures whose name is the
// name of a check. Pure.
NodeHealth NodeHealthOf(const std::vector<CheckResult>& results, const std::string& hardware);

// Names the hardware. Nodes are compared only if it is the same: processors, kinds of accelerators
// and the number of workers that share them, as in "96 × Xeon 8380, Gaudi 2, 8 workers".
std::string HardwareName(const DeviceFiles& files, int nproc);

}  // namespace hlaunch
