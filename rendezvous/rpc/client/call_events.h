// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "grpc/support/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// Returns the time in `duration` from now, on gRPC's monotonic clock.
gpr_timespec FromNow(Duration duration);

// What the thread of a client waits for: the next step of its stream, or a wake-up by another
// thread.
//
// Wake is thread-safe; the rest belongs to the client's thread.
class CallEvents {
 public:
  enum class Event { kTimeout, kWake, kStarted, kRead, kWritten, kHalfClosed, kEnded };

  CallEvents() = default;
  CallEvents(const CallEvents&) = delete;
  CallEvents& operator=(const CallEvents&) = delete;
  // Requires: no operation of a stream is under way.
  ~CallEvents();

  // The tag of an operation whose end is `event`.
  static void* Tag(Event event);

  // Ends the call of Next that runs, else the following one, with kWake.
  void Wake();

  // Returns the next event, and whether the operation succeeded; kTimeout at `until`.
  std::pair<Event, bool> Next(Instant now, Instant until);

  grpc::CompletionQueue* queue() { return &queue_; }

 private:
  grpc::CompletionQueue queue_;
  Mutex mu_;
  bool waking_ ABSL_GUARDED_BY(mu_) = false;  // The alarm is set: it must not be set twice.
  grpc::Alarm wake_ ABSL_GUARDED_BY(mu_);
};

}  // namespace hlaunch
