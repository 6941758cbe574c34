// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Decides when the keeper ends the workers, because their agent stands still and another round may
// begin without this node. The agent's loop says now and then until when they may live.
//
// A value; decides and does nothing by itself.
class Fence {
 public:
  // The agent's loop turns: its workers may live until `until` without another word of it.
  // Instant::max(): without an end, since no worker lives or no other node can take over. A new
  // `until` that has passed comes from before a pause of this process, and is forgiven like one.
  void Allow(Instant until, Instant now);

  // When Fallen is to be asked again; unset: not before the next Allow.
  std::optional<Instant> NextLook(Instant now) const;

  // Whether the workers have to end now. If it is asked much later than it wanted, this process was
  // paused, as the agent may have been (a frozen host): then the agent has a moment to go on.
  bool Fallen(Instant now);

  // How long ago the agent gave its last sign of life, and whether another one is overdue: else its
  // loop turns, and what the rendezvous allowed is over.
  Duration Silence(Instant now) const { return now - allowed_at_; }
  bool Overdue(Instant now) const { return Silence(now) > 2 * step_; }

 private:
  Instant until_ = Instant::max();
  Instant allowed_at_;
  Instant look_at_ = Instant::max();  // When Fallen wanted to be asked.
  Duration step_{};                   // Between two looks.
  Instant forgiven_until_;
};

// How long the agent's loop may wait until it allows the next time. Pure.
Duration NextSignOfLife(Instant until, Instant now);

// The message by which an agent tells its keeper, and its content; unset: it is another message.
// Both processes have the same clock. Pure.
std::string EncodeSignOfLife(Instant until);
std::optional<Instant> DecodeSignOfLife(absl::string_view message);

}  // namespace hlaunch
