// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "comm/call/call.h"

namespace hlaunch {

// Which ranks are on the same host, and so share memory.
struct Hosts {
  // The ranks of each host, ascending; the hosts in the order of their lowest ranks.
  std::vector<std::vector<Rank>> ranks;
  std::vector<int> host_of;   // By rank.
  std::vector<int> index_of;  // By rank: its position among the ranks of its host.
  int per_host = 1;           // The number of ranks on each host; 0 if it differs.

  int count() const { return static_cast<int>(ranks.size()); }
};

// Groups ranks by the name that each gives its host; "" means that the rank shares memory with no
// other. Pure.
Hosts GroupByHost(const std::vector<std::string>& names);

}  // namespace hlaunch
