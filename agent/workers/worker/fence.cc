// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/workers/worker/fence.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hlaunch {
namespace {

constexpr absl::string_view kWord = "until ";
constexpr Duration kLate = std::chrono::seconds(1);      // How late a busy host may be.
constexpr Duration kPatience = std::chrono::seconds(2);  // For an agent that resumes as well.
constexpr Duration kUnknownStep = std::chrono::seconds(5);
constexpr Duration kLeastStep = std::chrono::milliseconds(100);
constexpr int kSignsWithinTheLimit = 8;

}  // namespace

Duration NextSignOfLife(Instant until, Instant now) {
  return std::max((until - now) / kSignsWithinTheLimit, kLeastStep);
}

void Fence::Allow(Instant until, Instant now) {
  if (until > now) {
    step_ = NextSignOfLife(until, now);
  } else if (until_ == Instant::max() || until > until_) {
    // The message lay unread while this process was paused; a newer one will follow soon.
    if (step_ == Duration::zero()) step_ = kUnknownStep;
    forgiven_until_ = now + step_ + kPatience;
  }
  until_ = until;
  allowed_at_ = now;
  if (look_at_ == Instant::max()) look_at_ = now + step_;
  if (until == Instant::max()) look_at_ = Instant::max();
}

std::optional<Instant> Fence::NextLook(Instant now) const {
  if (until_ == Instant::max()) return std::nullopt;
  return std::max(now, std::min(look_at_, std::max(until_, forgiven_until_)));
}

bool Fence::Fallen(Instant now) {
  if (until_ == Instant::max()) return false;
  if (now > look_at_ + kLate) forgiven_until_ = now + step_ + kPatience;
  look_at_ = now + step_;
  return now >= until_ && now >= forgiven_until_;
}

std::string EncodeSignOfLife(Instant until) {
  return absl::StrCat(kWord, until.time_since_epoch().count());
}

std::optional<Instant> DecodeSignOfLife(absl::string_view message) {
  Duration::rep count = 0;
  if (!absl::ConsumePrefix(&message, kWord) || !absl::SimpleAtoi(message, &count)) {
    return std::nullopt;
  }
  return Instant(Duration(count));
}

}  // namespace hlaunch
