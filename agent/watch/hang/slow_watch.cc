// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/slow_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace hlaunch {
namespace {

constexpr int kLooksToJudge = 4;
constexpr int kLooksToTell = 12;

Duration PartOf(Duration whole, double part) {
  return std::chrono::duration_cast<Duration>(whole * part);
}

}  // namespace

void SlowWatch::Add(const std::vector<PaceSample>& samples, Instant now) {
  ++looks_;
  for (size_t i = 0; i < std::min(samples.size(), paces_.size()); ++i) {
    paces_[i].Add(samples[i], now);
  }
}

std::vector<RankShare> SlowWatch::Shares() const {
  std::vector<RankShare> shares;
  for (size_t i = 0; i < paces_.size(); ++i) {
    RankShare share = paces_[i].share();
    if (share.all.looks == 0) continue;
    share.rank = first_rank_ + static_cast<Rank>(i);
    share.local_rank = static_cast<int>(i);
    share.host = host_;
    shares.push_back(std::move(share));
  }
  return shares;
}

SlowNews SlowWatch::Judge(Instant now) {
  news_.ranks = {};
  if (looks_ % kLooksToJudge != 0) return news_;
  std::vector<RankShare> all = Shares();
  for (const auto& [node, ranks] : others_) all.insert(all.end(), ranks.begin(), ranks.end());
  Instant since = now;
  Instant first = now;
  for (const RankPace& pace : paces_) {
    since = std::min(since, pace.since().value_or(now));
    first = std::min(first, pace.first().value_or(now));
  }
  news_.ranks = judge_.Look(all, now - since);
  news_.saved = std::max(news_.saved, PartOf(now - first, FindLostShare(all).saving));
  news_.waited = Waited(all, first, now);
  return news_;
}

// What is lost stays lost. A share of the whole time would vanish once another rank is the slow
// one, or none; so then a further period begins.
Duration SlowWatch::Waited(std::vector<RankShare> all, Instant first, Instant now) {
  const std::vector<RankShare> whole = all;
  for (RankShare& rank : all) {
    const PaceCount before = before_[rank.rank];
    rank.all.looks -= before.looks;
    rank.all.waited -= before.waited;
    rank.all.saved -= before.saved;
  }
  const Duration waited = PartOf(now - std::max(period_, first), FindLostShare(all).waiting);
  if (2 * waited < most_) {
    for (const RankShare& rank : whole) before_[rank.rank] = rank.all;
    period_ = now;
    sum_ += std::exchange(most_, Duration::zero());
  } else {
    most_ = std::max(most_, waited);
  }
  return sum_ + most_;
}

std::string SlowWatch::Word(size_t max_bytes) {
  if (looks_ - told_ < kLooksToTell) return "";
  const std::vector<RankShare> shares = Shares();
  if (shares.empty()) return "";
  told_ = looks_;
  return SharesText(shares, max_bytes);
}

bool SlowWatch::Hear(int node_rank, const std::string& text) {
  std::optional<std::vector<RankShare>> ranks = ParseShares(text);
  if (!ranks) return false;
  others_[node_rank] = *std::move(ranks);
  return true;
}

}  // namespace hlaunch
