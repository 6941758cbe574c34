// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/hang/same_state.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rendezvous/round/hang/describe_hang.h"

namespace hlaunch {
namespace {

std::string NameOf(const GroupSnapshot& group) {
  return group.description.empty() ? group.name : group.description;
}

// The call that is not over: "all_reduce number 4 of default_pg ([4] Float)"; empty if there is
// none.
struct Inside {
  std::string call;
  bool on_device = false;
};

Inside InsideOf(const RankSnapshot& rank) {
  for (const GroupSnapshot& group : rank.groups) {
    for (const CollectiveCall& call : group.latest) {
      if (!call.inside) continue;
      return {absl::StrCat(call.op, " number ", call.sequence, " of ", NameOf(group),
                           call.sizes.empty() ? "" : absl::StrCat(" (", call.sizes, ")")),
              !group.backend.empty()};
    }
  }
  return {};
}

}  // namespace

std::string DescribeState(const RankSnapshot& rank) {
  if (rank.ended || rank.died) return DescribeRank(rank);
  if (rank.pid == 0) return "has not started";
  if (rank.state == '?') return "is gone";
  const bool held = rank.state == 'T' || rank.state == 't' || rank.traced;
  if (held) return DescribeRank(rank);
  if (GoesOn(rank)) return "goes on";
  const Inside inside = InsideOf(rank);
  if (inside.call.empty()) return DescribeRank(rank);
  if (inside.on_device) {
    return absl::StrCat("has given its device ", inside.call, ", which is not over, and ",
                        DescribeRank(rank));
  }
  return absl::StrCat("is in ", inside.call,
                      rank.place.empty() ? "" : absl::StrCat(", in ", rank.place));
}

std::vector<SameState> GroupByState(std::vector<RankSnapshot> ranks) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankSnapshot& a, const RankSnapshot& b) { return a.rank < b.rank; });
  std::map<std::string, SameState> by_text;
  for (const RankSnapshot& rank : ranks) {
    std::string text = DescribeState(rank);
    SameState& state = by_text[text];
    state.text = std::move(text);
    state.ranks.push_back(rank.rank);
    if (state.hosts.empty() || state.hosts.back() != rank.host) state.hosts.push_back(rank.host);
  }
  std::vector<SameState> states;
  for (auto& [text, state] : by_text) states.push_back(std::move(state));
  std::stable_sort(states.begin(), states.end(), [](const SameState& a, const SameState& b) {
    return std::make_pair(a.ranks.size(), a.ranks[0]) < std::make_pair(b.ranks.size(), b.ranks[0]);
  });
  return states;
}

std::string DescribeProgress(const std::vector<RankSnapshot>& ranks) {
  struct Span {
    CollectiveCall first, last;
  };
  std::map<std::string, Span> groups;
  for (const RankSnapshot& rank : ranks) {
    for (const GroupSnapshot& group : rank.groups) {
      if (!GoesOn(rank) || group.latest.empty()) continue;
      const CollectiveCall& call = group.latest.back();
      Span& span = groups.try_emplace(NameOf(group), Span{call, call}).first->second;
      if (call.sequence < span.first.sequence) span.first = call;
      if (call.sequence > span.last.sequence) span.last = call;
    }
  }
  // The group with the most calls tells the most.
  const auto most = std::max_element(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.second.last.sequence < b.second.last.sequence; });
  if (most == groups.end()) return "";
  const Span& span = most->second;
  const bool same = span.first.sequence == span.last.sequence;
  return absl::StrCat(most->first, " is at ", span.last.op, " number ",
                      same ? "" : absl::StrCat(span.first.sequence, " to "), span.last.sequence);
}

}  // namespace hlaunch
