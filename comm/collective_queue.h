// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "comm/call/work.h"
#include "comm/collective_runner.h"
#include "comm/collectives/collective.h"
#include "comm/record/call_record.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"
#include "proto/base/thread.h"

namespace hlaunch {

// Puts the collectives of a group into one order and runs them one after another. A call of Run
// runs on the caller's thread if no other is under way; all other calls run on a thread of the
// queue, which begins with the first of them. Thread-safe.
class CollectiveQueue {
 public:
  // `runner` and `record` outlive the queue. `record` may be null.
  explicit CollectiveQueue(CollectiveRunner& runner, CallRecord* record = nullptr)
      : runner_(runner), record_(record) {}
  // Aborts the group if calls are under way.
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;

  // Blocks until `call` is over.
  absl::Status Run(Collective&& call, Duration timeout);
  WorkPtr Start(Collective&& call, Duration timeout);
  // Waits until all calls are over, then runs a monitored barrier on the caller's thread.
  absl::Status MonitoredBarrier(Duration timeout);

 private:
  class QueuedCall;

  std::shared_ptr<QueuedCall> Enqueue(Collective&& call, Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t NextNumber(const Collective& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndCall(uint64_t number);
  void RunQueue();

  CollectiveRunner& runner_;
  CallRecord* const record_;
  Mutex mu_;
  CondVar changed_;
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;   // The number of the last call.
  size_t under_way_ ABSL_GUARDED_BY(mu_) = 0;  // Calls that are not over, with those in queue_.
  std::deque<std::shared_ptr<QueuedCall>> queue_ ABSL_GUARDED_BY(mu_);  // The first one runs.
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  Thread thread_;
};

}  // namespace hlaunch
