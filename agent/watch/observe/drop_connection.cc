// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/observe/drop_connection.h"

#include <algorithm>
#include <map>

namespace hlaunch {

size_t ConnectionToDrop(const std::vector<OpenConnection>& open) {
  std::map<std::string, size_t> counts;
  size_t most = 0;
  for (const OpenConnection& one : open) most = std::max(most, ++counts[one.source]);
  size_t oldest = open.size();
  for (size_t i = 0; i < open.size(); ++i) {
    if (counts[open[i].source] != most) continue;
    if (!open[i].answered) return i;
    oldest = std::min(oldest, i);
  }
  return oldest;
}

}  // namespace hlaunch
