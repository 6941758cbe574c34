// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/rank_pace.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "agent/watch/hang/json_words.h"
#include "agent/workers/process/descendants.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxGroupsCompared = 32;  // Of one rank.
constexpr size_t kMaxShares = 1024;
constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr char kMark[] = "pace";
constexpr int kPermille = 1000;

Pace PaceNamed(absl::string_view word) {
  return word == "waits"   ? Pace::kWaits
         : word == "saves" ? Pace::kSaves
         : word == "works" ? Pace::kWorks
                           : Pace::kUnknown;
}

int64_t CountIn(const Json& json) { return std::clamp<int64_t>(NumberOf(json), 0, kMaxCount); }

Json ToJson(const PaceCount& count) { return {count.looks, count.waited, count.saved}; }

PaceCount CountOf(const Json& json) {
  if (!json.is_array() || json.size() != 3) return {};
  const int64_t looks = CountIn(json[0]);
  return {looks, std::min(looks, CountIn(json[1])), std::min(looks, CountIn(json[2]))};
}

int64_t Permille(double part) { return static_cast<int64_t>(part * kPermille); }

double PartOf(const Json& json) {
  return static_cast<double>(std::clamp<int64_t>(NumberOf(json), -kPermille, kPermille)) /
         kPermille;
}

std::vector<std::string> GroupsOf(const Json& json) {
  std::vector<std::string> groups;
  for (size_t i = 0; json.is_array() && i < std::min(json.size(), kMaxGroupsCompared); ++i) {
    groups.push_back(WordOf(json[i]));
  }
  return groups;
}

// Torch writes it as a text; some releases, as a number.
int64_t CallNumber(const Json& json) {
  int64_t number = 0;
  return absl::SimpleAtoi(WordOf(json), &number) ? number : NumberOf(json);
}

std::string TextOf(const RankShare& rank) {
  const Json json = {rank.rank,          rank.local_rank,        rank.host,  rank.pid,
                     ToJson(rank.steps), ToJson(rank.all),       rank.place, rank.at_place,
                     Permille(rank.ran), Permille(rank.delayed), rank.groups};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::optional<RankShare> ShareOf(const Json& json) {
  if (!json.is_array() || json.size() != 11) return std::nullopt;
  RankShare rank;
  rank.rank = static_cast<Rank>(NumberOf(json[0]));
  rank.local_rank = static_cast<int>(NumberOf(json[1]));
  rank.host = WordOf(json[2]);
  rank.pid = static_cast<int>(NumberOf(json[3]));
  rank.steps = CountOf(json[4]);
  rank.all = CountOf(json[5]);
  rank.place = WordOf(json[6]);
  rank.at_place = CountIn(json[7]);
  rank.ran = PartOf(json[8]);
  rank.delayed = PartOf(json[9]);
  rank.groups = GroupsOf(json[10]);
  return rank;
}

double Part(Duration part, Duration whole) {
  return whole <= Duration::zero() ? -1 : std::clamp(InSeconds(part) / InSeconds(whole), 0.0, 1.0);
}

}  // namespace

absl::string_view ProgressOf(absl::string_view answer) {
  return answer.substr(0, answer.find('\n'));
}

PaceSample PaceOf(absl::string_view answer) {
  PaceSample sample;
  sample.calls = std::string(ProgressOf(answer));
  if (sample.calls.size() == answer.size()) return sample;
  const Json told = ParseJson(answer.substr(sample.calls.size() + 1));
  sample.pace = PaceNamed(WordOf(At(told, "does")));
  sample.place = WordOf(At(told, "at"));
  sample.groups = GroupsOf(At(told, "groups"));
  return sample;
}

bool HasUnfinishedCalls(absl::string_view status) {
  const Json json = ParseJson(status);
  const Json& groups = At(json, "pg_status");
  if (!groups.is_object()) return false;
  return std::any_of(groups.begin(), groups.end(), [](const Json& group) {
    return CallNumber(At(group, "last_enqueued_collective")) >
           CallNumber(At(group, "last_completed_collective"));
  });
}

void AddProcessorUse(pid_t pid, PaceSample* sample) {
  sample->pid = pid;
  const std::vector<std::string> fields =
      absl::StrSplit(ReadSmallFile(absl::StrCat("/proc/", pid, "/schedstat")), ' ');
  int64_t ran = 0;
  int64_t delayed = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[0], &ran) ||
      !absl::SimpleAtoi(fields[1], &delayed)) {
    return;
  }
  sample->ran = std::chrono::nanoseconds(ran);
  sample->delayed = std::chrono::nanoseconds(delayed);
}

void RankPace::Add(const PaceSample& sample, Instant now) {
  const PaceSample before = std::exchange(last_, sample);
  if (sample.pid != before.pid) looks_.clear();
  if (sample.pace == Pace::kUnknown) return;
  if (!first_) first_ = now;
  ++all_.looks;
  all_.waited += sample.pace == Pace::kWaits ? 1 : 0;
  all_.saved += sample.pace == Pace::kSaves ? 1 : 0;
  const bool same_wait = sample.pace == Pace::kWaits && before.pace == Pace::kWaits &&
                         sample.calls == before.calls && sample.pid == before.pid;
  if (same_wait) return;
  looks_.push_back({sample.pace, sample.place, now, sample.ran, sample.delayed});
  if (looks_.size() > kLooks) looks_.pop_front();
}

std::optional<Instant> RankPace::since() const {
  return looks_.empty() ? std::nullopt : std::optional<Instant>(looks_.front().at);
}

RankShare RankPace::share() const {
  RankShare share;
  share.pid = last_.pid;
  share.groups = last_.groups;
  share.all = all_;
  std::map<std::string, int64_t> places;
  for (const Look& look : looks_) {
    ++share.steps.looks;
    share.steps.waited += look.pace == Pace::kWaits ? 1 : 0;
    share.steps.saved += look.pace == Pace::kSaves ? 1 : 0;
    if (look.pace != Pace::kWaits && !look.place.empty()) ++places[look.place];
  }
  for (const auto& [place, count] : places) {
    if (count > share.at_place) share.place = place;
    share.at_place = std::max(share.at_place, count);
  }
  if (looks_.size() < 2) return share;
  const Look& first = looks_.front();
  const Look& last = looks_.back();
  if (first.ran && last.ran) share.ran = Part(*last.ran - *first.ran, last.at - first.at);
  if (first.delayed && last.delayed) {
    share.delayed = Part(*last.delayed - *first.delayed, last.at - first.at);
  }
  return share;
}

std::string SharesText(const std::vector<RankShare>& ranks, size_t max_bytes) {
  std::string text = absl::StrCat("{\"", kMark, "\":[");
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::string one = TextOf(ranks[i]);
    if (text.size() + one.size() + 3 > max_bytes) break;
    absl::StrAppend(&text, i == 0 ? "" : ",", one);
  }
  return text + "]}";
}

std::optional<std::vector<RankShare>> ParseShares(absl::string_view text) {
  if (!absl::StartsWith(text, "{")) return std::nullopt;
  const Json json = ParseJson(text);
  const Json& shares = At(json, kMark);
  if (!shares.is_array()) return std::nullopt;
  std::vector<RankShare> ranks;
  for (size_t i = 0; i < std::min(shares.size(), kMaxShares); ++i) {
    if (std::optional<RankShare> share = ShareOf(shares[i])) ranks.push_back(*std::move(share));
  }
  return ranks;
}

}  // namespace hlaunch
