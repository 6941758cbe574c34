// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Decides when the user is told what this node waits for, and in which words: after a second, then
// at growing intervals. A value without a clock: `now` is an argument.
class WaitingSchedule {
 public:
  // The node waits for `reason`. Returns false if that is already known.
  bool Wait(const std::string& reason, Instant now);

  // The node does not wait any more. The next Wait starts counting from zero.
  void Stop() { reason_.clear(); }

  bool waiting() const { return !reason_.empty(); }

  // When the next message is due. That is never right after `now`, so reasons that change quickly
  // make one line.
  Instant Next(Instant now) const;

  // Returns the message for `now`: the reason with the time waited. Requires: waiting().
  std::string Tell(Instant now);

 private:
  std::string reason_;  // Empty if the node does not wait.
  Instant since_;
  Duration next_;  // The next message is due this long after `since_`.
};

// Tells the user what this node waits for, at the times that WaitingSchedule sets.
//
// Belongs to the loop thread.
class WaitingNotice {
 public:
  // `tell` is called from the loop with one line; it must not destroy the notice.
  WaitingNotice(asio::io_context& loop, std::function<void(const std::string&)> tell);
  ~WaitingNotice();

  void Wait(const std::string& reason);
  void Stop();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
