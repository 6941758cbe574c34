// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// At most this many starters may be on their way at once.
constexpr size_t kMostInFlight = 64;

// Returns how many more starters may begin at `now`, on a host with `cpus` processors. `begun` says
// when those on their way began. A starter that began not long ago likely needs a processor here,
// so there are only a few of these for each; an older one likely waits for the other end. Pure.
size_t RoomForStarts(const std::vector<Instant>& begun, int cpus, Instant now);

// How long starts without an answer may go on. The time counts from the last progress of any host:
// as long as some host gets further, the others may only be waiting for their turn, on this host's
// processors or on a file system that all use.
//
// Belongs to one thread.
class StartPatience {
 public:
  StartPatience(Duration limit, Instant now) : limit_(limit), progress_(now) {}

  void Progress(Instant now) { progress_ = now; }
  Instant progress() const { return progress_; }
  Duration limit() const { return limit_; }
  // Returns when a start without an answer is given up if no host gets further.
  Instant ends() const { return progress_ + limit_; }

 private:
  const Duration limit_;
  Instant progress_;
};

}  // namespace hlaunch
