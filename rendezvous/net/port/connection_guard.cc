// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/port/connection_guard.h"

#include <utility>

namespace hlaunch {

ConnectionGuard::ConnectionGuard(Kind kind, std::shared_ptr<std::atomic<uint64_t>> floods)
    : floods_(std::move(floods)) {
  if (kind == Kind::kClear) meter_.emplace(MonotonicClock().Now());
}

bool ConnectionGuard::Received(absl::string_view bytes) {
  MutexLock lock(&mu_);
  if (flooded_) return false;
  if (!meter_) {
    if (!shaken_) progress_.Received(bytes);
    return true;
  }
  if (meter_->Received(bytes, MonotonicClock().Now())) return true;
  flooded_ = true;
  ++*floods_;
  return false;
}

void ConnectionGuard::Sent(absl::string_view bytes) {
  MutexLock lock(&mu_);
  if (meter_) return meter_->Sent(bytes);
  if (!shaken_) shaken_ = progress_.Sends();
}

}  // namespace hlaunch
