// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <random>

#include "proto/base/clock.h"

namespace hlaunch {

// The pauses between a store client's attempts: each longer than the one before, up to a second,
// and never the same, since thousands of clients may be trying at once. One thread.
class Pauses {
 public:
  // Sleeps. False, at once: `deadline` leaves no time for another attempt.
  bool PauseUntil(Instant deadline);

 private:
  std::minstd_rand random_{std::random_device{}()};
  Duration longest_ = std::chrono::milliseconds(10);
};

}  // namespace hlaunch
