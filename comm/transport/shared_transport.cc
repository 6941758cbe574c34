// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/shared_transport.h"

#include "proto/base/status_macros.h"

namespace hlaunch {

void SharedTransport::BeginTurn() {
  MutexLock lock(&mu_);
  AwaitTurn();
}

void SharedTransport::AwaitTurn() {
  if (taken_) {
    ++starting_;
    UpdateOthersWait();
    transport_->Poke();
    while (taken_) changed_.Wait(&mu_);
    --starting_;
    UpdateOthersWait();
    // Wakes threads in YieldTurn, which have let this starting thread go first.
    changed_.SignalAll();
  }
  taken_ = true;
  // The previous thread has used up the poke of the threads that still wait to start.
  if (starting_ > 0) transport_->Poke();
}

void SharedTransport::EndTurn() {
  MutexLock lock(&mu_);
  taken_ = false;
  if (starting_ + waiting_ > 0) changed_.SignalAll();
}

void SharedTransport::YieldTurn(const Message& message, Instant until) {
  MutexLock lock(&mu_);
  taken_ = false;
  if (starting_ + waiting_ > 0) changed_.SignalAll();
  ++waiting_;
  UpdateOthersWait();
  // Threads that start go first. Then the first thread that finds the turn free moves all messages.
  while (!IsDone(message) && (taken_ || starting_ > 0)) {
    if (!changed_.WaitUntil(&mu_, until)) break;
  }
  --waiting_;
  UpdateOthersWait();
  AwaitTurn();
}

absl::StatusOr<bool> SharedTransport::Turn::WaitUntil(const Message& message, Instant until) {
  while (true) {
    HLAUNCH_RETURN_IF_ERROR(shared_.transport_->Progress(message, until));
    if (message.done) return true;
    if (MonotonicClock().Now() >= until) return false;
    shared_.YieldTurn(message, until);
  }
}

absl::Status SharedTransport::Turn::Wait(const Message& message, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const bool done, WaitUntil(message, deadline));
  return done ? absl::OkStatus() : shared_.transport_->GiveUp(message);
}

}  // namespace hlaunch
