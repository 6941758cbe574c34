// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/event_hook/deliver_event.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The agent's end of a process that gives a job's events to their receiver, one after another, so
// that a receiver which is slow or hangs holds up no job. The process is made before the keeper,
// whose child it is: the end of workers or of the agent does not touch it, nor do signals that
// stop the job. What waits for it lies in the socket between them, which holds some hundred
// events; the next ones are dropped and counted.
//
// Movable; belongs to one thread. Once the last of its agents is gone, the process gives what it
// has within kLastWords, and ends.
class EventHook {
 public:
  static constexpr Duration kDeliverLimit = std::chrono::seconds(10);  // Of an event.
  static constexpr Duration kLastWords = std::chrono::seconds(10);     // Of all that is left.

  // Nobody is told.
  EventHook() = default;

  // Makes the process.
  //
  // Requires: called before the keeper and other threads.
  // Errors: ResourceExhausted - no process or descriptor.
  static absl::StatusOr<EventHook> Begin(const EventReceiver& receiver);

  // The end of an agent that was exec'ed with ForExec() in its environment; of nobody where there
  // is none. Removes it there.
  static EventHook FromEnv();
  // "NAME=n" for the environment of a program that this process is about to exec as the agent. The
  // descriptor stays open over that exec. Empty: nobody is told.
  std::string ForExec() const;

  bool any() const { return socket_.valid(); }

  // Hands over `event`, one JSON object with its line's end. Never blocks. Events that were
  // dropped before are counted in it, as "dropped".
  void Send(absl::string_view event);

  // Says that nothing more will come.
  void Finish() const;
  // Waits until all was given or given up, at the latest `until`; whether it is so.
  bool AwaitGiven(Instant until) const;

 private:
  explicit EventHook(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  int dropped_ = 0;  // Since the last one that was handed over.
};

// `event` with the number of those that are missing before it. Pure.
std::string WithDropped(absl::string_view event, int dropped);

}  // namespace hlaunch
