// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/health/local/check_result.h"

namespace hlaunch {

// The smallest CPU quota of this process's control group and those above it, v2 or v1, in CPUs; 0
// if there is none. `root` is a folder in place of "/", for tests. Thread-safe.
double CpusAllowed(const std::string& root = "");

// Checks that the quota leaves at least half a CPU. The value is the quota in CPUs.
CheckResult CheckCpuQuota(const std::string& root = "");

}  // namespace hlaunch
