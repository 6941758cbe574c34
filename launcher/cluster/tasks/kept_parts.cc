// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/tasks/kept_parts.h"

#include <algorithm>
#include <map>
#include <queue>

namespace hlaunch {

std::vector<uint64_t> PartsToRemove(const std::vector<EndedPart>& ended, size_t most) {
  std::map<uid_t, std::queue<uint64_t>> of_user;
  for (const EndedPart& part : ended) of_user[part.uid].push(part.job);
  std::vector<uint64_t> removed;
  while (ended.size() - removed.size() > most) {
    auto& jobs = std::max_element(of_user.begin(), of_user.end(), [](const auto& a, const auto& b) {
                   return a.second.size() < b.second.size();
                 })->second;
    removed.push_back(jobs.front());
    jobs.pop();
  }
  return removed;
}

}  // namespace hlaunch
