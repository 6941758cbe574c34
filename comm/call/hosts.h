// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "comm/call/call.h"

namespace hlaunch {

// Which ranks share memory with which.
struct Hosts {
  // The ranks of each host, in their order; hosts in the order of their lowest ranks.
  std::vector<std::vector<Rank>> ranks;
  std::vector<int> host_of;   // By rank.
  std::vector<int> index_of;  // By rank: its place among those of its host.
  int per_host = 1;           // How many ranks each has; 0 if they differ.

  int count() const { return static_cast<int>(ranks.size()); }
};

// From what each rank says of its host; "" for one that shares memory with nobody. Pure.
Hosts GroupByHost(const std::vector<std::string>& names);

}  // namespace hlaunch
