// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "proto/base/clock.h"

namespace hlaunch {

// What a voter in a group of two does when the other one, which led, is silent. It cannot tell
// whether the other one is dead, and one of two is no majority.
enum class OnHostLoss {
  kWait,      // It waits for the other one, or for proof that it is dead.
  kContinue,  // It does not wait for ever. If only the network between them is cut, both go on.
};

// The times and the choice for all voters of a job.
struct VoterRule {
  Duration lease = std::chrono::seconds(5);            // Silence after which a leader is replaced.
  Duration beat = std::chrono::milliseconds(500);      // Between a leader's signs of life.
  Duration lapse_after = std::chrono::seconds(15);     // Silence after which a member is replaced.
  Duration continue_after = std::chrono::seconds(40);  // kContinue: silence before going on alone.
  OnHostLoss on_host_loss = OnHostLoss::kWait;
};

// Shortens a duration so that it is not exceeded even on a clock that is slow by a tenth.
inline Duration Shortened(Duration duration) { return duration - duration / 10; }

}  // namespace hlaunch
