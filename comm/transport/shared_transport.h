// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "comm/transport/transport.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// A transport that several threads use. One of them at a time is inside; while it waits there it
// moves everybody's messages on, and lets in who comes: so a receive that nobody answers holds up
// no other call. Thread-safe.
class SharedTransport {
 public:
  explicit SharedTransport(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}

  // Unguarded: what may be called from any thread, or never changes.
  Rank rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  std::string host() const { return transport_->host(); }
  void Abort(const std::string& why) { transport_->Abort(why); }

  // The right to be inside, for as long as it lives; gives way while it waits.
  class Turn {
   public:
    explicit Turn(SharedTransport& shared) : shared_(shared) { shared_.GoIn(); }
    ~Turn() { shared_.GoOut(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    Transport* operator->() const { return shared_.transport_.get(); }

    // As Transport::Wait; but what another thread starts meanwhile is started.
    absl::Status Wait(const Message& message, Instant deadline);
    // The same without an end: false if it was not done in time.
    absl::StatusOr<bool> WaitUntil(const Message& message, Instant until);

   private:
    SharedTransport& shared_;
  };

 private:
  void GoIn();
  void TakeTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GoOut();
  // Lets others in and comes back, or returns once `message` is done by them.
  void GiveWay(const Message& message, Instant until);
  void NoteCompany() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    transport_->set_company(coming_ + resting_ > 0);
  }

  const std::unique_ptr<Transport> transport_;
  Mutex mu_;
  CondVar changed_;
  bool inside_ ABSL_GUARDED_BY(mu_) = false;
  int coming_ ABSL_GUARDED_BY(mu_) = 0;  // Who wants to go in.
  int resting_ ABSL_GUARDED_BY(mu_) =
      0;  // Who waits for a message that whoever is inside moves on.
};

}  // namespace hlaunch
