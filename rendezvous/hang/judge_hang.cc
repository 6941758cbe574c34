// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/hang/judge_hang.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hlaunch {
namespace {

constexpr Duration kLeast = std::chrono::seconds(60);    // The shortest time-out that is learnt.
constexpr Duration kPatience = std::chrono::minutes(5);  // At least, for work and for a start.
constexpr int kTimesTheLongest = 5;
constexpr int64_t kFirstCollectives = 3;  // Data and checkpoints are loaded between them.
constexpr int kForWork = 5;               // This many times the time-out.

// Returns true if a rank is known to be missing, or ranks contradict each other: then half of the
// time-out is enough.
bool IsClear(const HangVerdict& verdict) {
  return (verdict.kind == HangKind::kBehind && !verdict.for_peers) ||
         verdict.kind == HangKind::kMismatch || verdict.kind == HangKind::kCrossed;
}

}  // namespace

Duration HangLimit(const HangRule& rule, const HangVerdict& verdict, Duration longest) {
  const bool clear = IsClear(verdict) && !verdict.busy;
  if (rule.timeout) return clear ? *rule.timeout / 2 : *rule.timeout;
  const Duration learnt = std::max(kLeast, kTimesTheLongest * longest);
  const bool starts = verdict.group.empty() || verdict.collective.sequence <= kFirstCollectives;
  if (starts || verdict.busy) return std::max(kPatience, kForWork * learnt);
  return clear ? learnt / 2 : learnt;
}

HangNews HangJudge::Look(const HangVerdict& verdict, Instant now) {
  if (verdict.wavefront != wavefront_) {
    const Duration age = now - since_;
    const bool lasted = !wavefront_.empty();
    if (lasted) longest_ = std::max(longest_, age);
    wavefront_ = verdict.wavefront;
    since_ = now;
    if (std::exchange(suspects_, false)) return {HangNews::Kind::kWentOn, age};
    return {};
  }
  const Duration age = now - since_;
  if (verdict.kind == HangKind::kNone || suspects_) return {};
  if (age < HangLimit(rule_, verdict, longest_)) return {HangNews::Kind::kNothing, age};
  suspects_ = true;
  return {HangNews::Kind::kSuspect, age};
}

void HangJudge::Forgive(Duration blind) { since_ += blind; }

}  // namespace hlaunch
