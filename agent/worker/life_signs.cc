// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/worker/life_signs.h"

#include <utility>

#include "agent/worker/fence.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {
namespace {

// The time that the loop needs to send SIGKILL.
constexpr Duration kKilling = std::chrono::milliseconds(500);

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
  due_ = false;
  Turn();
}

void LifeSigns::End() {
  timer_->timer.cancel();
  if (std::exchange(limited_, false) && show_) show_(Instant::max());
}

void LifeSigns::Turn() {
  const Instant now = MonotonicClock().Now();
  const Instant until = allowed_(now);
  if (until == Instant::max()) return;
  limited_ = true;
  if (show_) show_(until);
  if (now + kKilling >= until && !std::exchange(due_, true)) on_due_();
  timer_->timer.expires_after(NextSignOfLife(until, now));
  timer_->timer.async_wait([this](const asio::error_code& error) {
    if (!error) Turn();
  });
}

}  // namespace hlaunch
