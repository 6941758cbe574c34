// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>

#include "proto/base/clock.h"

namespace hlaunch {

// When a running round ends for something that can wait a little: once rank 0 says again that it is
// at a good moment, such as after a checkpoint, at the latest after a limit. A script that has not
// said so in this round is not waited for. Each reason to end a round has one of its own, and all
// of them take what node rank 0 tells; nodes are asked by Directive::wants_boundary while one is
// wanted.
//
// A value.
class GoodMoment {
 public:
  // A round begins: nothing is wanted, and nothing was told.
  void Begin() { *this = {}; }

  // The round is to end within `limit`; wanted again, the earlier end holds. Returns whether that
  // is new, so that the nodes are to be told.
  bool Want(Duration limit, Instant t);
  // It is not any more. Returns whether it was, so that the nodes are to be told.
  bool Forget();

  // NodeUpdate::boundaries of node rank 0, in this round.
  void Take(int64_t boundaries);

  bool wanted() const { return ends_.has_value(); }
  // The round is to end now.
  bool Due(Instant t) const { return ends_ && (told_ > before_ || t >= *ends_); }
  // When it ends at the latest; unset: it is not to.
  std::optional<Instant> ends() const { return ends_; }

 private:
  int64_t told_ = 0;    // The highest that was told,
  int64_t before_ = 0;  // and what it was when the end was wanted.
  std::optional<Instant> ends_;
};

}  // namespace hlaunch
