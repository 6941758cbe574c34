// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// Where one worker may run. A value.
struct WorkerBinding {
  std::vector<int> cpus;  // Ascending; empty: it is not bound.
  int memory_node = -1;   // Takes memory from this NUMA node as long as there is some; -1: as is.
  int cores = 0;          // Physical cores that are its share of them; 0: it is not bound.
  std::string why;        // In a few words; may be empty.
};

}  // namespace hlaunch
