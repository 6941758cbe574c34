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

// A transport that several threads use. One thread at a time has its turn. While that thread waits
// for its own message it moves the messages of all threads, and it lets other threads in, so a
// receive that nobody answers delays no other call. Thread-safe.
class SharedTransport {
 public:
  explicit SharedTransport(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}

  // These need no turn: they may be called from any thread, or never change.
  Rank rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  std::string host() const { return transport_->host(); }
  void Abort(const std::string& why) { transport_->Abort(why); }

  // The right to use the transport, for as long as the object lives. While it waits it yields to
  // other threads.
  class Turn {
   public:
    explicit Turn(SharedTransport& shared) : shared_(shared) { shared_.BeginTurn(); }
    ~Turn() { shared_.EndTurn(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    Transport* operator->() const { return shared_.transport_.get(); }

    // As Transport::Wait; other threads can start messages meanwhile.
    absl::Status Wait(const Message& message, Instant deadline);
    // The same, but a message that is late does not end the group: false if it is not done.
    absl::StatusOr<bool> WaitUntil(const Message& message, Instant until);

   private:
    SharedTransport& shared_;
  };

 private:
  void BeginTurn();
  void AwaitTurn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndTurn();
  // Ends the turn, and begins a new one when `message` is done or no other thread has a turn.
  void YieldTurn(const Message& message, Instant until);
  void UpdateOthersWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    transport_->set_others_wait(starting_ + waiting_ > 0);
  }

  const std::unique_ptr<Transport> transport_;
  Mutex mu_;
  CondVar changed_;
  bool taken_ ABSL_GUARDED_BY(mu_) = false;  // A thread has its turn.
  int starting_ ABSL_GUARDED_BY(mu_) = 0;    // Threads that want to begin a turn.
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;     // Threads in YieldTurn.
};

}  // namespace hlaunch
