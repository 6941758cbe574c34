// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>

#include "proto/base/clock.h"

namespace hlaunch {

// Finds the moment at which a running round ends for something that can wait a little: once rank 0
// says again that it is at a good moment, such as after a checkpoint, or at the latest after a
// limit. A script that has not said so in this round is not waited for. Each reason to end a round
// has a GoodMoment of its own, and all of them take what node rank 0 reports. While one is wanted,
// Directive::wants_boundary asks the nodes for it.
//
// A value.
class GoodMoment {
 public:
  // A round begins: nothing is wanted, and nothing was told.
  void Begin() { *this = {}; }

  // The round must end within `limit`; if that is wanted already, the earlier end holds. Returns
  // whether that is new, so that the nodes must be told.
  bool Want(Duration limit, Instant t);
  // The round need not end any more. Returns whether it had to, so that the nodes must be told.
  bool Forget();

  // Takes NodeUpdate::boundaries of node rank 0 in this round.
  void Take(int64_t boundaries);

  bool wanted() const { return ends_.has_value(); }
  // Returns whether the round must end now.
  bool Due(Instant t) const { return ends_ && (told_ > before_ || t >= *ends_); }
  // Returns when the round ends at the latest; unset if its end is not wanted.
  std::optional<Instant> ends() const { return ends_; }

 private:
  int64_t told_ = 0;    // The highest number that was reported.
  int64_t before_ = 0;  // That number when the end became wanted.
  std::optional<Instant> ends_;
};

}  // namespace hlaunch
