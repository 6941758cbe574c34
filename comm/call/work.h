// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "comm/call/call.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A call that is under way. The object may be dropped: the call goes on, and its memory must stay
// until the call is done or the group is destroyed. Thread-safe.
class Work {
 public:
  virtual ~Work() = default;

  // Blocks until the call is over and returns its status.
  //
  // Errors: those of ProcessGroup; and
  //   DeadlineExceeded - the call is not over after `patience`. It goes on: call Wait again. The
  //       group's own time-out ends the call for all ranks.
  virtual absl::Status Wait(std::optional<Duration> patience = std::nullopt) = 0;

  // Returns true if the call is over, with success or not. Moves the call on if no other thread
  // does.
  virtual bool Done() = 0;

  // Returns, for a receive that is over, the rank that sent the message.
  virtual Rank source() const { return -1; }
};
using WorkPtr = std::shared_ptr<Work>;

}  // namespace hlaunch
