// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/cluster/host_name.h"

#include <algorithm>

namespace hlaunch {

bool IsClusterHostName(const std::string& name) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kMaxHostName && is_plain(name[0]) &&
         std::all_of(name.begin(), name.end(), [&is_plain](char c) {
           return is_plain(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace hlaunch
