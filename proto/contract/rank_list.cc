// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/contract/rank_list.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxRanks = 1 << 16;

}  // namespace

std::string RankList(const std::vector<Rank>& ranks) {
  std::string list;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    absl::StrAppend(&list, list.empty() ? "" : ",", ranks[i]);
    if (last > i) absl::StrAppend(&list, last == i + 1 ? "," : "-", ranks[last]);
    i = last + 1;
  }
  return list;
}

std::vector<Rank> ParseRankList(absl::string_view list) {
  std::vector<Rank> ranks;
  for (const absl::string_view part :
       absl::StrSplit(list, absl::ByAnyChar("[], "), absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    Rank first = 0, last = 0;
    if (!absl::SimpleAtoi(ends.first, &first) || first < 0) continue;
    if (ends.second.empty()) {
      last = first;
    } else if (!absl::SimpleAtoi(ends.second, &last)) {
      continue;
    }
    for (int64_t rank = first; rank <= last && ranks.size() < kMaxRanks; ++rank) {
      ranks.push_back(static_cast<Rank>(rank));
    }
  }
  return ranks;
}

}  // namespace hlaunch
