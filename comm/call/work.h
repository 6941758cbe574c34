// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "comm/call/call.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A call that is under way. Thread-safe. It may be dropped: the call goes on, and its memory must
// stay until it is done or the group is gone.
class Work {
 public:
  virtual ~Work() = default;

  // Blocks until the call is over and says how it went.
  //
  // Errors: those of ProcessGroup; and
  //   DeadlineExceeded - not over after `patience`, which ends nothing: wait again. The group's own
  //       time-out ends the call for all.
  virtual absl::Status Wait(std::optional<Duration> patience = std::nullopt) = 0;

  // Whether it is over, well or badly. Moves it on if nobody else does.
  virtual bool Done() = 0;

  // Of a receive that is over: who sent it.
  virtual Rank source() const { return -1; }
};
using WorkPtr = std::shared_ptr<Work>;

}  // namespace hlaunch
