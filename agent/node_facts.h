// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What this node offers its workers, read from the kernel. All functions are thread-safe; none
// fails: what cannot be read does not limit. `root` precedes /sys and /proc, for tests.

namespace hlaunch {

// The CPUs that this process may run on, by its affinity mask and its control group. Empty:
// unknown.
std::vector<int> AllowedCpus();

// How many physical cores this process may use: those of its affinity mask, but no more than
// the CPU quota of its control group. At least 1.
int UsableCores();

// The same of a process that may run on `cpus`.
int UsableCores(const std::vector<int>& cpus, const std::string& root = "");

// The physical cores that `cpus` belong to; a CPU of unknown topology counts as one.
int PhysicalCores(const std::vector<int>& cpus, const std::string& root = "");

// The CPU quota of this process's control group and those above it, v2 or v1, in whole CPUs
// but at least 1. 0 if there is none.
int CpuQuota(const std::string& root = "");

// The network interface by which packets to `address`, a literal, leave: the right
// GLOO_SOCKET_IFNAME. Empty if there is no route.
std::string InterfaceTowards(absl::string_view address);

}  // namespace hlaunch
