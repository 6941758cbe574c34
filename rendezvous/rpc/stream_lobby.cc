// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/stream_lobby.h"

#include <chrono>
#include <vector>

namespace hlaunch {
namespace {

// The limit of streams that have not joined; beyond it the oldest is ended. A whole cluster may
// connect at once.
constexpr size_t kMaxInLobby = 16384;

}  // namespace

StreamLobby::Place StreamLobby::Enter(const std::shared_ptr<Guest>& guest) {
  const Place place(MonotonicClock().Now() + patience_, guest.get());
  std::shared_ptr<Guest> oldest;
  {
    MutexLock lock(&mu_);
    guests_.emplace(place, guest);
    if (guests_.size() > kMaxInLobby) oldest = guests_.extract(guests_.begin()).mapped();
    if (alarm_ == nullptr) SetAlarm();
  }
  if (oldest != nullptr) {
    oldest->End(absl::UnavailableError("too many streams that have not joined"));
  }
  return place;
}

void StreamLobby::Leave(const Place& place) {
  MutexLock lock(&mu_);
  guests_.erase(place);
}

void StreamLobby::SetAlarm() {
  const Duration left = guests_.begin()->first.first - MonotonicClock().Now();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  alarm_ = std::make_unique<grpc::Alarm>();  // An alarm that rings cannot be set again.
  alarm_->Set(::gpr_time_add(::gpr_now(GPR_CLOCK_MONOTONIC),
                             ::gpr_time_from_micros(micros + 1, GPR_TIMESPAN)),
              [weak = weak_from_this()](bool rang) {
                const std::shared_ptr<StreamLobby> lobby = rang ? weak.lock() : nullptr;
                if (lobby != nullptr) lobby->Sweep();
              });
}

// Called when the alarm rings.
void StreamLobby::Sweep() {
  std::vector<std::shared_ptr<Guest>> late;
  {
    MutexLock lock(&mu_);
    const Instant now = MonotonicClock().Now();
    while (!guests_.empty() && guests_.begin()->first.first <= now) {
      late.push_back(guests_.extract(guests_.begin()).mapped());
    }
    alarm_.reset();
    if (!guests_.empty()) SetAlarm();
  }
  for (const auto& guest : late) {
    guest->End(absl::DeadlineExceededError("no join came in time"));
  }
}

}  // namespace hlaunch
