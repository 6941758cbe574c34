// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/health/joint/roll_call.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr Duration kSoon = std::chrono::seconds(1);  // The caller has added a line itself.

struct Keys {
  explicit Keys(absl::string_view key)
      : lines(absl::StrCat(key, "/lines")),
        count(absl::StrCat(key, "/count")),
        answer(absl::StrCat(key, "/answer")) {}
  std::string lines, count, answer;
};

// Precedes the one line that all ranks have said. Lines of single ranks begin with a number.
constexpr absl::string_view kAll = "= ";

RollCall Read(absl::string_view text, const std::vector<Rank>& ranks) {
  RollCall said;
  if (absl::ConsumePrefix(&text, kAll)) {
    for (const Rank rank : ranks) said[rank] = std::string(text);
    return said;
  }
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    Rank rank;
    if (absl::SimpleAtoi(words.first, &rank)) said[rank] = std::string(words.second);
  }
  return said;
}

// Closes the call: the first rank to do so decides the answer.
absl::StatusOr<RollCall> Close(Store& store, const Keys& keys, const std::vector<Rank>& ranks) {
  HLAUNCH_ASSIGN_OR_RETURN(std::string lines,
                           store.Get(keys.lines, MonotonicClock().Now() + kSoon));
  const RollCall said = Read(lines, ranks);
  const bool same = !said.empty() && std::all_of(said.begin(), said.end(), [&](const auto& one) {
    return one.second == said.begin()->second;
  });
  if (same && said.size() == ranks.size()) lines = absl::StrCat(kAll, said.begin()->second);
  HLAUNCH_ASSIGN_OR_RETURN(const std::string answer, store.CompareAndSet(keys.answer, "", lines));
  return Read(answer, ranks);
}

}  // namespace

absl::StatusOr<RollCall> CallRoll(Store& store, absl::string_view key, Rank rank,
                                  const std::vector<Rank>& ranks, absl::string_view line,
                                  Instant deadline) {
  const Keys keys(key);
  HLAUNCH_RETURN_IF_ERROR(store.Append(
      keys.lines, absl::StrCat(rank, " ", absl::StrReplaceAll(line, {{"\n", " "}}), "\n")));
  HLAUNCH_ASSIGN_OR_RETURN(const int64_t said, store.Add(keys.count, 1));
  if (said >= static_cast<int64_t>(ranks.size())) return Close(store, keys, ranks);
  const absl::StatusOr<std::string> answer = store.Get(keys.answer, deadline);
  if (absl::IsDeadlineExceeded(answer.status())) return Close(store, keys, ranks);
  HLAUNCH_RETURN_IF_ERROR(answer.status());
  return Read(*answer, ranks);
}

std::vector<std::string> RollCallKeys(absl::string_view key) {
  const Keys keys(key);
  return {keys.lines, keys.count, keys.answer};
}

}  // namespace hlaunch
