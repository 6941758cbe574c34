// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Decides when the keeper ends the workers because their agent stands still and another round may
// begin without this node. The agent's loop says regularly until when the workers may live.
//
// A value; it only decides, it does nothing by itself.
class Fence {
 public:
  // The agent's loop turns: its workers may live until `until` without another message.
  // Instant::max(): without an end, because no worker lives or no other node can take over. A new
  // `until` that has already passed was sent before a pause of this process; it is forgiven like a
  // pause.
  void Allow(Instant until, Instant now);

  // When Fallen has to be called again; unset if not before the next Allow.
  std::optional<Instant> NextLook(Instant now) const;

  // Returns true if the workers have to end now. If Fallen is called much later than it asked for,
  // this process was paused, and perhaps the agent too (a frozen host): the agent then gets a
  // moment to go on.
  bool Fallen(Instant now);

  // How long ago the agent gave its last sign of life, and whether the next one is overdue. If it
  // is not overdue, the loop turns but the time that the rendezvous allowed is over.
  Duration Silence(Instant now) const { return now - allowed_at_; }
  bool Overdue(Instant now) const { return Silence(now) > 2 * step_; }

 private:
  Instant until_ = Instant::max();
  Instant allowed_at_;
  Instant look_at_ = Instant::max();  // When Fallen asked to be called.
  Duration step_{};                   // The time between two calls.
  Instant forgiven_until_;
};

// How long the agent's loop may wait before its next sign of life. Pure.
Duration NextSignOfLife(Instant until, Instant now);

// The message that carries the agent's sign of life to its keeper, and its content; unset if
// `message` is another one. Both processes have the same clock. Pure.
std::string EncodeSignOfLife(Instant until);
std::optional<Instant> DecodeSignOfLife(absl::string_view message);

}  // namespace hlaunch
