// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "proto/base/clock.h"

namespace hlaunch {

// What a witness does when it is one of two, the other one led and is silent. Nobody can tell
// whether that one is dead, and one of two is no majority.
enum class OnHostLoss {
  kWait,      // For the other one, or for proof that it is dead.
  kContinue,  // Not for ever. Where only the way between them is cut, both go on.
};

// The same for all of a job.
struct WitnessRule {
  Duration lease = std::chrono::seconds(5);            // Silence after which a leader is replaced.
  Duration beat = std::chrono::milliseconds(500);      // Between a leader's signs of life.
  Duration lapse_after = std::chrono::seconds(15);     // Silence after which a member is.
  Duration continue_after = std::chrono::seconds(40);  // kContinue: silence after which it goes on.
  OnHostLoss on_host_loss = OnHostLoss::kWait;
};

// What is left of a duration on a clock that may be slow by a tenth.
inline Duration Shortened(Duration duration) { return duration - duration / 10; }

}  // namespace hlaunch
