// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/clock.h"

#include <ctime>

namespace hlaunch {
namespace {

class SteadyClock final : public Clock {
 public:
  Instant Now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

Clock& MonotonicClock() {
  static SteadyClock clock;
  return clock;
}

// steady_clock reads CLOCK_MONOTONIC (libstdc++).
Instant RoughNow() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

int64_t BootMillis() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

int64_t WallMillis() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace hlaunch
