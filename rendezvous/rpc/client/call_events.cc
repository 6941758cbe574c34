// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/rpc/client/call_events.h"

#include <algorithm>
#include <cstdint>

namespace hlaunch {

gpr_timespec FromNow(Duration duration) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  return ::gpr_time_add(::gpr_now(GPR_CLOCK_MONOTONIC),
                        ::gpr_time_from_micros(std::max<int64_t>(micros, 0), GPR_TIMESPAN));
}

CallEvents::~CallEvents() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

void* CallEvents::Tag(Event event) { return reinterpret_cast<void*>(static_cast<intptr_t>(event)); }

void CallEvents::Wake() {
  MutexLock lock(&mu_);
  if (std::exchange(waking_, true)) return;
  wake_.Set(&queue_, FromNow(Duration::zero()), Tag(Event::kWake));
}

std::pair<CallEvents::Event, bool> CallEvents::Next(Instant now, Instant until) {
  void* tag = nullptr;
  bool ok = false;
  const auto next = queue_.AsyncNext(&tag, &ok, FromNow(until - now));
  if (next != grpc::CompletionQueue::GOT_EVENT) return {Event::kTimeout, false};
  const Event event = static_cast<Event>(reinterpret_cast<intptr_t>(tag));
  if (event == Event::kWake) {
    MutexLock lock(&mu_);
    waking_ = false;
  }
  return {event, ok};
}

}  // namespace hlaunch
