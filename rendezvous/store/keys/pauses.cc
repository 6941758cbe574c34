// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/keys/pauses.h"

#include <algorithm>
#include <thread>

namespace hlaunch {
namespace {

constexpr Duration kLongestPause = std::chrono::seconds(1);

}  // namespace

bool Pauses::PauseUntil(Instant deadline) {
  const Duration pause(std::uniform_int_distribution<Duration::rep>(longest_.count() / 2,
                                                                    longest_.count())(random_));
  longest_ = std::min(longest_ * 2, kLongestPause);
  if (MonotonicClock().Now() + pause >= deadline) return false;
  std::this_thread::sleep_for(pause);
  return true;
}

}  // namespace hlaunch
