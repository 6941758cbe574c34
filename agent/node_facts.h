// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What this node offers its workers, read from the kernel. All functions are thread-safe and none
// fails: what cannot be read does not limit. `root` is put before /sys and /proc, for tests.

namespace hlaunch {

// The CPUs that this process may run on, by its affinity mask and its control group. Empty if
// unknown.
std::vector<int> AllowedCpus();

// How many physical cores this process may use: those of its affinity mask, but at most the CPU
// quota of its control group. At least 1.
int UsableCores();

// The same for a process that may run on `cpus`.
int UsableCores(const std::vector<int>& cpus, const std::string& root = "");

// The number of physical cores that `cpus` belong to; a CPU of unknown topology counts as one core.
int PhysicalCores(const std::vector<int>& cpus, const std::string& root = "");

// The smallest CPU quota of this process's control group and those above it, v2 or v1, in whole
// CPUs but at least 1. 0 if there is none.
int CpuQuota(const std::string& root = "");

// The network interface through which packets to `address`, a literal, leave: the right
// GLOO_SOCKET_IFNAME. Empty if there is no route.
std::string InterfaceTowards(absl::string_view address);

}  // namespace hlaunch
