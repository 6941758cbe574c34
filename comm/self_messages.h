// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "comm/call/call.h"
#include "comm/call/work.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// The messages of a rank to itself, matched by tag in their order. A send is copied and so over at
// once: a rank that sends to itself and then receives does not wait for itself. Thread-safe.
class SelfMessages {
 public:
  explicit SelfMessages(Rank self) : self_(self) {}

  void Send(DataType type, std::span<const std::byte> from, uint64_t tag);
  // Waits for a message until `timeout`. This object must outlive the calls of the work, not the
  // work.
  //
  // Errors of the work:
  //   InvalidArgument - the message is of another type or size.
  //   DeadlineExceeded - nothing was sent in time.
  WorkPtr Receive(DataType type, std::span<std::byte> into, uint64_t tag, Duration timeout);
  // Ends all receives that wait, and all later ones, with `why`.
  void End(const absl::Status& why);

 private:
  class Receipt;
  struct Message {
    DataType type;
    uint64_t tag;
    std::vector<std::byte> bytes;
  };

  void Deliver(const Message& message, Receipt& receipt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Settle(Receipt& receipt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsOver(Receipt& receipt);
  absl::Status Await(Receipt& receipt, Instant until);

  const Rank self_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Message> sent_ ABSL_GUARDED_BY(mu_);                     // Not received yet.
  std::deque<std::shared_ptr<Receipt>> posted_ ABSL_GUARDED_BY(mu_);  // Receives that still wait.
  absl::Status end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
