// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <chrono>
#include <cstdint>

namespace hlaunch {

// A point on this host's monotonic clock. Never sent to another host and never printed;
// wall time is only for people.
using Instant = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

inline double InSeconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Tells the current time. Thread-safe. Must outlive every holder of a reference.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

// The host's monotonic clock.
Clock& MonotonicClock();

// The time of the host's monotonic clock at most 10 ms ago. It takes a fifth of the time to read.
Instant RoughNow();

// Milliseconds since this host booted, including sleep. All processes of the host get the same.
int64_t BootMillis();

// Wall time in milliseconds since 1970, for reports and for programs outside hlaunch that use it.
int64_t WallMillis();

}  // namespace hlaunch
