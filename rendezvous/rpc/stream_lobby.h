// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/alarm.h"
#include "proto/base/clock.h"
#include "proto/base/mutex.h"

namespace hlaunch {

// Streams that have not joined, the oldest first. Ends a stream whose patience is over, and the
// oldest if there are too many. One alarm is enough, since all streams have the same patience.
//
// Thread-safe. Shared with the alarm.
class StreamLobby : public std::enable_shared_from_this<StreamLobby> {
 public:
  class Guest {
   public:
    virtual ~Guest() = default;
    virtual void End(const absl::Status& status) = 0;
  };
  using Place = std::pair<Instant, const Guest*>;  // When a stream's time is up.

  explicit StreamLobby(Duration patience) : patience_(patience) {}

  Place Enter(const std::shared_ptr<Guest>& guest) ABSL_LOCKS_EXCLUDED(mu_);
  void Leave(const Place& place) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Sweep() ABSL_LOCKS_EXCLUDED(mu_);
  void SetAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Duration patience_;
  Mutex mu_;
  std::map<Place, std::shared_ptr<Guest>> guests_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mu_);  // Set from a guest until it rings.
};

}  // namespace hlaunch
