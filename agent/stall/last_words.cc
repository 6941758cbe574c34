// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/stall/last_words.h"

#include <utility>

#include "absl/strings/match.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"

namespace hlaunch {
namespace {

constexpr Duration kRest = std::chrono::milliseconds(100);  // For the lines after the first.

// The first words of Python and of the C++ library.
bool BeginsLastWords(absl::string_view bytes) {
  return absl::StrContains(bytes, "Traceback (most recent call last)") ||
         absl::StrContains(bytes, "terminate called");
}

}  // namespace

struct LastWords::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, Look the_look, Tell the_tell)
      : timer(loop), look(std::move(the_look)), tell(std::move(the_tell)) {}

  void LookSoon() {
    if (std::exchange(is_due, true)) return;
    timer.expires_after(kRest);
    timer.async_wait([weak = weak_from_this()](const asio::error_code& error) {
      const std::shared_ptr<State> self = weak.lock();
      if (!error && self != nullptr) self->LookNow();
    });
  }

  void LookNow() {
    is_due = false;
    std::vector<int> now = look();
    if (now == told) return;
    told = now;
    tell(std::move(now));
  }

  asio::steady_timer timer;
  const Look look;
  const Tell tell;
  bool is_due = false;
  std::vector<int> told;
};

LastWords::LastWords(asio::io_context& loop, Look look, Tell tell)
    : state_(std::make_shared<State>(loop, std::move(look), std::move(tell))) {}

LastWords::~LastWords() = default;

LastWords::Reader LastWords::Read(Reader next) {
  return [weak = std::weak_ptr<State>(state_), next = std::move(next)](absl::string_view bytes) {
    const std::shared_ptr<State> state = weak.lock();
    if (state != nullptr && BeginsLastWords(bytes)) state->LookSoon();
    if (next) next(bytes);
  };
}

}  // namespace hlaunch
