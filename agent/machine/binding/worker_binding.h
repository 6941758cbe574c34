// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// Where one worker may run. A value.
struct WorkerBinding {
  std::vector<int> cpus;  // In ascending order; empty if the worker is not bound.
  // Memory comes from this NUMA node as long as it has some; -1 leaves the policy as it is.
  int memory_node = -1;
  int cores = 0;    // The worker's share of the physical cores; 0 if it is not bound.
  std::string why;  // The reason in a few words; may be empty.
};

}  // namespace hlaunch
