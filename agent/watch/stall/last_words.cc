// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/stall/last_words.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/steady_timer.hpp"
#include "proto/base/clock.h"

namespace hlaunch {
namespace {

constexpr Duration kWaitForMoreLines = std::chrono::milliseconds(100);  // After the first.

// The first words of Python and of the C++ library.
constexpr absl::string_view kPython = "Traceback (most recent call last)";
constexpr absl::string_view kCpp = "terminate called";
// The most bytes of such words that can be at the end of what was read, without the rest.
constexpr size_t kPart = kPython.size() - 1;

bool BeginsLastWords(absl::string_view bytes) {
  return absl::StrContains(bytes, kPython) || absl::StrContains(bytes, kCpp);
}

// Finds the first words in what is read piece by piece.
class FirstWordsFinder {
 public:
  // True if they are in `bytes`, or begin before and end in `bytes`.
  bool IsIn(absl::string_view bytes) {
    absl::StrAppend(&end_, bytes.substr(0, kPart));
    const bool found = BeginsLastWords(end_) || BeginsLastWords(bytes);
    if (bytes.size() > kPart) end_ = std::string(bytes.substr(bytes.size() - kPart));
    if (end_.size() > kPart) end_.erase(0, end_.size() - kPart);
    return found;
  }

 private:
  std::string end_;  // The last bytes that were read.
};

}  // namespace

struct LastWords::State : std::enable_shared_from_this<State> {
  State(asio::io_context& loop, Look the_look, Tell the_tell)
      : timer(loop), look(std::move(the_look)), tell(std::move(the_tell)) {}

  void LookSoon() {
    if (std::exchange(is_due, true)) return;
    timer.expires_after(kWaitForMoreLines);
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
  return [weak = std::weak_ptr<State>(state_), next = std::move(next),
          finder = FirstWordsFinder()](absl::string_view bytes) mutable {
    const std::shared_ptr<State> state = weak.lock();
    if (state != nullptr && finder.IsIn(bytes)) state->LookSoon();
    if (next) next(bytes);
  };
}

}  // namespace hlaunch
