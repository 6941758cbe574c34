// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/remote/ssh/start_pace.h"

#include <algorithm>

namespace hlaunch {
namespace {

constexpr size_t kBusyPerCpu = 8;
// Eight key exchanges on one processor take less.
constexpr Duration kBusyTime = std::chrono::seconds(5);

}  // namespace

size_t RoomForStarts(const std::vector<Instant>& begun, int cpus, Instant now) {
  const auto busy = static_cast<size_t>(std::count_if(
      begun.begin(), begun.end(), [now](Instant start) { return now < start + kBusyTime; }));
  const size_t most_busy = kBusyPerCpu * static_cast<size_t>(std::max(cpus, 1));
  return std::min(kMostInFlight - std::min(begun.size(), kMostInFlight),
                  most_busy - std::min(busy, most_busy));
}

}  // namespace hlaunch
