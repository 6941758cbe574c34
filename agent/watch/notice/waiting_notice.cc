// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/notice/waiting_notice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"

namespace hlaunch {
namespace {

constexpr Duration kFirstNotice = std::chrono::seconds(1);
constexpr Duration kSettle = std::chrono::milliseconds(300);  // Time for the reason to settle.
constexpr Duration kShortestPause = std::chrono::seconds(5);
constexpr Duration kLongestPause = std::chrono::seconds(60);

}  // namespace

bool WaitingSchedule::Wait(const std::string& reason, Instant now) {
  if (reason == reason_) return false;
  if (!waiting()) {
    since_ = now;
    next_ = kFirstNotice;
  }
  reason_ = reason;
  return true;
}

Instant WaitingSchedule::Next(Instant now) const { return std::max(since_ + next_, now + kSettle); }

std::string WaitingSchedule::Tell(Instant now) {
  const Duration waited = now - since_;
  next_ = waited + std::clamp(waited, kShortestPause, kLongestPause);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  absl::string_view what = reason_;
  if (!absl::ConsumePrefix(&what, "waiting for ")) return absl::StrCat(what, " (", seconds, " s)");
  return absl::StrCat("waiting ", seconds, " s for ", what);
}

struct WaitingNotice::State {
  State(asio::io_context& loop, std::function<void(const std::string&)> the_tell)
      : timer(loop), tell(std::move(the_tell)) {}

  void Arm() {
    timer.expires_at(schedule.Next(MonotonicClock().Now()));
    timer.async_wait([this](const asio::error_code& error) {
      if (error || !schedule.waiting()) return;
      tell(schedule.Tell(MonotonicClock().Now()));
      Arm();
    });
  }

  asio::steady_timer timer;
  const std::function<void(const std::string&)> tell;
  WaitingSchedule schedule;
};

WaitingNotice::WaitingNotice(asio::io_context& loop, std::function<void(const std::string&)> tell)
    : state_(std::make_unique<State>(loop, std::move(tell))) {}
WaitingNotice::~WaitingNotice() = default;

void WaitingNotice::Wait(const std::string& reason) {
  if (state_->schedule.Wait(reason, MonotonicClock().Now())) state_->Arm();
}

void WaitingNotice::Stop() {
  state_->schedule.Stop();
  state_->timer.cancel();
}

}  // namespace hlaunch
