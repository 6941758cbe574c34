// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/life_signs.h"

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
// The time that the rendezvous' client needs after a pause to say what is allowed now.
constexpr Duration kAfterPause = std::chrono::milliseconds(100);

}  // namespace

struct LifeSigns::Timer {
  explicit Timer(asio::io_context& loop) : timer(loop) {}
  asio::steady_timer timer;
};

LifeSigns::LifeSigns(asio::io_context& loop, std::function<Instant(Instant now)> allowed,
                     ShowFn show, std::function<void()> on_due)
    : allowed_(std::move(allowed)),
      show_(std::move(show)),
      on_due_(std::move(on_due)),
      timer_(std::make_unique<Timer>(loop)) {}
LifeSigns::~LifeSigns() = default;

void LifeSigns::Begin() {
  due_ = forgave_ = false;
  look_at_ = MonotonicClock().Now();
  Turn();
}

void LifeSigns::End() {
  timer_->timer.cancel();
  if (std::exchange(limited_, false) && show_) show_(Instant::max());
}

void LifeSigns::Turn() {
  const Instant now = MonotonicClock().Now();
  // What is allowed was said before the pause. One such look is forgiven, not two in a row.
  forgave_ = now > look_at_ + kLoopPaused && !forgave_;
  if (forgave_) return TurnAfter(kAfterPause);
  const Instant until = allowed_(now);
  if (until == Instant::max()) return;
  limited_ = true;
  if (show_) show_(until);
  if (now + kKilling >= until && !std::exchange(due_, true)) on_due_();
  TurnAfter(NextSignOfLife(until, now));
}

void LifeSigns::TurnAfter(Duration delay) {
  look_at_ = MonotonicClock().Now() + delay;
  timer_->timer.expires_at(look_at_);
  timer_->timer.async_wait([this](const asio::error_code& error) {
    if (!error) Turn();
  });
}

}  // namespace hlaunch
