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

// Decides when a person is told for what this node waits, and in which words: after a second, then
// ever more rarely. A value without a clock: `now` is an argument.
class WaitingSchedule {
 public:
  // The node waits for `reason`. Returns false if that is nothing new.
  bool Wait(const std::string& reason, Instant now);

  // The node does not wait any more. The next Wait begins to count anew.
  void Stop() { reason_.clear(); }

  bool waiting() const { return !reason_.empty(); }

  // When the next words are due. Reasons that change quickly make one line, so the time is never
  // right after `now`.
  Instant Next(Instant now) const;

  // The words that are due at `now`: the reason with the time waited. Requires: waiting().
  std::string Tell(Instant now);

 private:
  std::string reason_;  // Empty: the node does not wait.
  Instant since_;
  Duration next_;  // After `since_`.
};

// Tells a person for what this node waits, as WaitingSchedule says.
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
