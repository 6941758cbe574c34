// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/transport/shared_transport.h"

#include "proto/base/status_macros.h"

namespace hlaunch {

void SharedTransport::GoIn() {
  MutexLock lock(&mu_);
  TakeTurn();
}

void SharedTransport::TakeTurn() {
  if (inside_) {
    ++coming_;
    NoteCompany();
    transport_->Poke();
    while (inside_) changed_.Wait(&mu_);
    --coming_;
    NoteCompany();
    // Whoever stood back for those who come may go on.
    changed_.SignalAll();
  }
  inside_ = true;
  // The poke of those who still wait to come in has been used up by whoever was inside before.
  if (coming_ > 0) transport_->Poke();
}

void SharedTransport::GoOut() {
  MutexLock lock(&mu_);
  inside_ = false;
  if (coming_ + resting_ > 0) changed_.SignalAll();
}

void SharedTransport::GiveWay(const Message& message, Instant until) {
  MutexLock lock(&mu_);
  inside_ = false;
  if (coming_ + resting_ > 0) changed_.SignalAll();
  ++resting_;
  NoteCompany();
  // Those who come go first; then whoever finds nobody inside goes on for all.
  while (!IsDone(message) && (inside_ || coming_ > 0)) {
    if (!changed_.WaitUntil(&mu_, until)) break;
  }
  --resting_;
  NoteCompany();
  TakeTurn();
}

absl::StatusOr<bool> SharedTransport::Turn::WaitUntil(const Message& message, Instant until) {
  while (true) {
    HLAUNCH_RETURN_IF_ERROR(shared_.transport_->Progress(message, until));
    if (message.done) return true;
    if (MonotonicClock().Now() >= until) return false;
    shared_.GiveWay(message, until);
  }
}

absl::Status SharedTransport::Turn::Wait(const Message& message, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const bool done, WaitUntil(message, deadline));
  return done ? absl::OkStatus() : shared_.transport_->GiveUp(message);
}

}  // namespace hlaunch
