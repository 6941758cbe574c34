// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/judge_hang.h"

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
  const bool known = !verdict.for_peers || !verdict.group.empty();
  return (verdict.kind == HangKind::kBehind && known) || verdict.kind == HangKind::kMismatch ||
         verdict.kind == HangKind::kCrossed;
}

// The first sample is taken after half of the limit, the last one at its end.
bool IsTimeForSample(const HangVerdict& verdict, Duration age, Duration limit) {
  const int steps = std::max(verdict.samples_needed - 1, 1);
  return verdict.samples < verdict.samples_needed &&
         age * 2 * steps >= limit * (steps + verdict.samples);
}

}  // namespace

Duration HangLimit(const HangRule& rule, const HangVerdict& verdict, Duration longest) {
  const bool clear = IsClear(verdict) && !verdict.busy;
  if (rule.timeout) return clear ? *rule.timeout / 2 : *rule.timeout;
  const Duration learnt = std::max(kLeast, kTimesTheLongest * longest);
  const bool starts = verdict.kind != HangKind::kMpi &&
                      (verdict.group.empty() || verdict.collective.sequence <= kFirstCollectives);
  if (starts || verdict.busy) return std::max(kPatience, kForWork * learnt);
  return clear ? learnt / 2 : learnt;
}

Duration HangJudge::Forget(const std::vector<HangVerdict>& verdicts, Instant now) {
  Duration suspected{};
  std::erase_if(standstills_, [&](const auto& standstill) {
    const auto& [wavefront, state] = standstill;
    if (std::any_of(verdicts.begin(), verdicts.end(),
                    [&wavefront = wavefront](const auto& verdict) {
                      return verdict.wavefront == wavefront;
                    })) {
      return false;
    }
    if (state.sure) longest_ = std::max(longest_, now - state.since);
    if (state.suspected) suspected = std::max(suspected, now - state.since);
    return true;
  });
  return suspected;
}

HangNews HangJudge::Look(const std::vector<HangVerdict>& verdicts, Instant now) {
  const Duration suspected = Forget(verdicts, now);
  for (const HangVerdict& verdict : verdicts) {
    standstills_.try_emplace(verdict.wavefront, Standstill{now, now});
  }
  if (suspected > Duration::zero()) return {HangNews::Kind::kWentOn, suspected};
  HangNews news;
  for (size_t i = 0; i < verdicts.size(); ++i) {
    Standstill& standstill = standstills_.at(verdicts[i].wavefront);
    const Duration age = now - standstill.since;
    if (standstill.suspected) continue;
    HangVerdict working = verdicts[i];
    working.busy = true;
    if (verdicts[i].busy) standstill.worked = now;
    standstill.sure |= verdicts[i].samples_needed == 0;
    if (verdicts[i].samples_needed > 0) {
      const bool sample =
          IsTimeForSample(verdicts[i], age, HangLimit(rule_, verdicts[i], longest_));
      if (sample || age > news.age) news = {HangNews::Kind::kNothing, age, sample, i};
      if (sample) return news;
      continue;
    }
    if (age >= HangLimit(rule_, working, longest_) ||
        now - standstill.worked >= HangLimit(rule_, verdicts[i], longest_)) {
      standstill.suspected = true;
      return {HangNews::Kind::kSuspect, age, false, i};
    }
    if (age > news.age) news = {HangNews::Kind::kNothing, age, false, i};
  }
  return news;
}

void HangJudge::Forgive(Duration blind) {
  for (auto& [wavefront, standstill] : standstills_) {
    standstill.since += blind;
    standstill.worked += blind;
  }
}

}  // namespace hlaunch
