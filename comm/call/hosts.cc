// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/call/hosts.h"

#include <map>

namespace hlaunch {

Hosts GroupByHost(const std::vector<std::string>& names) {
  Hosts hosts;
  std::map<std::string, int> known;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    int host = hosts.count();
    if (!names[rank].empty()) host = known.emplace(names[rank], host).first->second;
    if (host == hosts.count()) hosts.ranks.emplace_back();
    hosts.host_of.push_back(host);
    hosts.index_of.push_back(static_cast<int>(hosts.ranks[host].size()));
    hosts.ranks[host].push_back(static_cast<Rank>(rank));
  }
  hosts.per_host = hosts.ranks.empty() ? 0 : static_cast<int>(hosts.ranks[0].size());
  for (const auto& ranks : hosts.ranks) {
    if (static_cast<int>(ranks.size()) != hosts.per_host) hosts.per_host = 0;
  }
  return hosts;
}

}  // namespace hlaunch
