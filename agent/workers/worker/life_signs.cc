// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/life_signs.h"

#include <algorithm>
#include <utility>

#include "agent/workers/worker/fence.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {
namespace {

// The time that the loop needs to send SIGKILL.
constexpr Duration kKilling = std::chrono::milliseconds(500);
// A loop that is later than this stood still.
constexpr Duration kLoopPaused = std::chrono::seconds(1);
// After a pause the rendezvous' client is asked so often, and for so long, what is allowed now.
constexpr Duration kAfterPause = std::chrono::milliseconds(100);
constexpr Duration kAllowancePatience = std::chrono::seconds(2);
// Less may be allowed soon after the workers have begun: once another node could take over.
constexpr Duration kNew = std::chrono::seconds(10);
constexpr Duration kNewStep = std::chrono::seconds(1);

}  // namespace

struct LifeSigns::Timer {
  explicit Timer(asio::io_context& loop) : timer(loop) {}
  asio::steady_timer timer;
};

LifeSigns::LifeSigns(asio::io_context& loop, std::function<Allowance(Instant now)> allowed,
                     ShowFn show, std::function<void()> on_due)
    : allowed_(std::move(allowed)),
      show_(std::move(show)),
      on_due_(std::move(on_due)),
      timer_(std::make_unique<Timer>(loop)) {}
LifeSigns::~LifeSigns() = default;

void LifeSigns::Begin() {
  due_ = false;
  woken_.reset();
  look_at_ = begun_ = MonotonicClock().Now();
  Turn();
}

void LifeSigns::End() {
  timer_->timer.cancel();
  if (std::exchange(limited_, false) && show_) show_(Instant::max());
}

void LifeSigns::Turn() {
  const Instant now = MonotonicClock().Now();
  const Allowance allowance = allowed_(now);
  const Instant until = allowance.workers_until;
  if (until == Instant::max()) return;
  if (now > look_at_ + kLoopPaused && allowance.as_of < look_at_) woken_ = now;
  const bool outdated = woken_ && allowance.as_of < *woken_ && now < *woken_ + kAllowancePatience;
  if (outdated) return TurnAfter(kAfterPause);
  woken_.reset();
  limited_ = true;
  if (show_) show_(until);
  if (now + kKilling >= until && !std::exchange(due_, true)) on_due_();
  const Duration step = NextSignOfLife(until, now);
  TurnAfter(now < begun_ + kNew ? std::min(step, kNewStep) : step);
}

void LifeSigns::TurnAfter(Duration delay) {
  look_at_ = MonotonicClock().Now() + delay;
  timer_->timer.expires_at(look_at_);
  timer_->timer.async_wait([this](const asio::error_code& error) {
    if (!error) Turn();
  });
}

}  // namespace hlaunch
