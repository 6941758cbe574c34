// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/events/deliver_event.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The agent's end of a process that delivers a job's events to their receiver one by one, so a
// receiver that is slow or hangs does not hold up the job. The process is started before the keeper
// and is the keeper's child: the end of workers or of the agent does not affect it, nor do signals
// that stop the job. Waiting events are in the socket between the two, which holds some hundred
// events. Further ones are dropped and counted.
//
// Movable; belongs to one thread. Once the last agent's end is closed, the process delivers what it
// has left within kLastWords and ends.
class EventHook {
 public:
  static constexpr Duration kDeliverLimit = std::chrono::seconds(10);  // For one event.
  static constexpr Duration kLastWords = std::chrono::seconds(10);     // For all that is left.

  // An empty hook: no receiver is told.
  EventHook() = default;

  // Starts the process.
  //
  // Requires: neither the keeper nor a second thread exists yet.
  // Errors: ResourceExhausted - no process or descriptor.
  static absl::StatusOr<EventHook> Begin(const EventReceiver& receiver);

  // Returns the end of an agent that was exec'ed with ForExec() in its environment, and removes the
  // variable; an empty hook if there is none.
  static EventHook FromEnv();
  // Returns "NAME=n" for the environment of a program that this process is about to exec as the
  // agent. The descriptor stays open over that exec. Empty if no receiver is told.
  std::string ForExec() const;

  bool any() const { return socket_.valid(); }

  // Hands over `event`, one JSON object with its newline. Never blocks. An event of more than 64
  // KiB is dropped. If events were dropped before it, their number is added to it as "dropped".
  void Send(absl::string_view event);

  // Tells the process that no more events will come.
  void Finish() const;
  // Waits, at the latest until `until`, until every event was delivered or given up. Returns true
  // if that is so.
  bool AwaitGiven(Instant until) const;

 private:
  explicit EventHook(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  int dropped_ = 0;  // Events dropped since the last one that was handed over.
};

// Returns `event` with the number of events that are missing before it. Pure.
std::string WithDropped(absl::string_view event, int dropped);

}  // namespace hlaunch
