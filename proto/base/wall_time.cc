// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/wall_time.h"

#include <cstdio>
#include <ctime>

namespace hlaunch {

std::string WallTime(int64_t wall_ms) {
  const std::time_t seconds = wall_ms / 1000;
  std::tm utc = {};
  char text[40] = "";
  if (::gmtime_r(&seconds, &utc) == nullptr) return text;
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(wall_ms % 1000));
  return text;
}

}  // namespace hlaunch
