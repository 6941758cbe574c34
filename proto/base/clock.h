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

// Where "now" comes from. Thread-safe; outlives whoever holds a reference.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant Now() const = 0;
};

// The host's monotonic clock: the one place that reads it.
Clock& MonotonicClock();

// The time of the host's monotonic clock up to 10 ms ago: asked for in a fifth of the time.
Instant RoughNow();

// Milliseconds since this host started, time asleep included: the same for all its processes.
int64_t BootMillis();

// Wall time in milliseconds since 1970: for reports, and for what outsiders reckon in it.
int64_t WallMillis();

}  // namespace hlaunch
