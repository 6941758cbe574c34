// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <random>

#include "proto/base/clock.h"

namespace hlaunch {

// The pauses between a store client's attempts. They grow up to a second and are random, since
// thousands of clients may be trying at once. Belongs to one thread.
class Pauses {
 public:
  // Sleeps and returns true. Returns false at once if `deadline` leaves no time for another
  // attempt.
  bool PauseUntil(Instant deadline);

 private:
  std::minstd_rand random_{std::random_device{}()};
  Duration longest_ = std::chrono::milliseconds(10);
};

}  // namespace hlaunch
