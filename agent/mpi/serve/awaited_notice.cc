// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/serve/awaited_notice.h"

#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/log.h"

namespace hlaunch {

struct AwaitedNotice::State {
  State(asio::io_context& loop, std::function<std::string()> who, std::string the_hint)
      : timer(loop), awaited(std::move(who)), hint(std::move(the_hint)) {}

  void Arm() {
    timer.expires_at(*since + patience);
    timer.async_wait([this, alive = std::weak_ptr<bool>(life)](const asio::error_code& error) {
      if (error || alive.expired() || !since) return;
      const std::string line = awaited();
      if (line.empty()) return;
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience).count();
      LogWarning(absl::StrCat(line, " for ", seconds, " s", hint));
      patience *= 2;
      Arm();
    });
  }

  asio::steady_timer timer;
  const std::function<std::string()> awaited;
  const std::string hint;
  std::optional<Instant> since;  // When the wait began; unset if no rank waits.
  Duration patience = kFirstNotice;
  bool hushed = false;
  const std::shared_ptr<bool> life = std::make_shared<bool>(true);  // Expires with this object.
};

AwaitedNotice::AwaitedNotice(asio::io_context& loop, std::function<std::string()> awaited,
                             std::string hint)
    : state_(std::make_unique<State>(loop, std::move(awaited), std::move(hint))) {}
AwaitedNotice::~AwaitedNotice() = default;

void AwaitedNotice::Look() {
  State& s = *state_;
  if (s.hushed || s.awaited().empty()) {
    s.patience = kFirstNotice;
    s.since.reset();
    s.timer.cancel();
  } else if (!s.since) {
    s.since = MonotonicClock().Now();
    s.Arm();
  }
}

void AwaitedNotice::Hush() {
  state_->hushed = true;
  Look();
}

}  // namespace hlaunch
