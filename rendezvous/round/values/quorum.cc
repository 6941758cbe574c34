// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/quorum.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hlaunch {
namespace {

// Takes the run of digits that `text` begins with, without leading zeros.
absl::string_view TakeNumber(absl::string_view* text) {
  size_t end = 0;
  while (end < text->size() && absl::ascii_isdigit((*text)[end])) ++end;
  absl::string_view number = text->substr(0, end);
  text->remove_prefix(end);
  while (number.size() > 1 && number[0] == '0') number.remove_prefix(1);
  return number;
}

bool ComesFirst(const Candidate& a, const Candidate& b) {
  const auto rank = [](const std::optional<int>& r) {
    return std::tuple(!r.has_value(), r.value_or(0));
  };
  if (rank(a.held_rank) != rank(b.held_rank)) return rank(a.held_rank) < rank(b.held_rank);
  if (rank(a.node_rank) != rank(b.node_rank)) return rank(a.node_rank) < rank(b.node_rank);
  if (NaturalLess(a.host, b.host)) return true;
  if (NaturalLess(b.host, a.host)) return false;
  return a.node_id < b.node_id;
}

// Returns `chosen`, which is sorted by ComesFirst, with each candidate at the place of its node
// rank.
std::vector<size_t> InRankOrder(const std::vector<Candidate>& candidates,
                                const std::vector<size_t>& chosen) {
  constexpr size_t kFree = static_cast<size_t>(-1);
  std::vector<size_t> order(chosen.size(), kFree);
  const auto claim = [&](const std::optional<int>& rank, size_t index) {
    if (!rank || *rank < 0 || static_cast<size_t>(*rank) >= order.size()) return false;
    if (order[*rank] != kFree) return false;
    order[*rank] = index;
    return true;
  };
  std::vector<size_t> without_held, rest;
  for (size_t index : chosen) {
    if (!claim(candidates[index].held_rank, index)) without_held.push_back(index);
  }
  for (size_t index : without_held) {
    if (!claim(candidates[index].node_rank, index)) rest.push_back(index);
  }
  size_t slot = 0;
  for (size_t index : rest) {
    while (order[slot] != kFree) ++slot;
    order[slot] = index;
  }
  return order;
}

int MultipleBelow(int nodes, const QuorumRule& rule) { return nodes - nodes % rule.node_multiple; }

// Returns "node ranks 1, 2 and 5 more have not joined", or empty if it cannot be known which nodes
// will come.
std::string MissingRanks(const std::vector<Candidate>& candidates, int nodes) {
  std::vector<bool> claimed(nodes);
  for (const Candidate& c : candidates) {
    if (!c.node_rank || *c.node_rank >= nodes) return "";
    claimed[*c.node_rank] = true;
  }
  std::vector<std::string> missing;
  for (int rank = 0; rank < nodes; ++rank) {
    if (!claimed[rank]) missing.push_back(absl::StrCat(rank));
  }
  if (missing.empty() || candidates.empty()) return "";
  return missing.size() == 1 ? absl::StrCat("node rank ", missing[0], " has not joined")
                             : absl::StrCat("node ranks ", NameSome(missing), " have not joined");
}

// "; here: a, b; not heard of: c".
std::string WhoIsHere(const std::vector<Candidate>& candidates) {
  std::vector<std::string> here, silent;
  for (const Candidate& c : candidates) (c.present ? here : silent).emplace_back(c.host);
  std::sort(here.begin(), here.end(), NaturalLess);
  std::sort(silent.begin(), silent.end(), NaturalLess);
  std::string text;
  if (!here.empty()) absl::StrAppend(&text, "; here: ", NameSome(here));
  if (!silent.empty()) absl::StrAppend(&text, "; not heard of: ", NameSome(silent));
  return text;
}

std::string WaitingReason(const std::vector<Candidate>& candidates, const QuorumRule& rule,
                          int present) {
  std::string text = absl::StrCat("waiting for ", std::max(1, rule.min_nodes - present), " of ",
                                  rule.min_nodes == rule.max_nodes ? "" : "at least ",
                                  rule.min_nodes, rule.min_nodes == 1 ? " node" : " nodes");
  if (rule.min_nodes == rule.max_nodes) {
    const std::string missing = MissingRanks(candidates, rule.max_nodes);
    if (!missing.empty()) absl::StrAppend(&text, ": ", missing);
  }
  return absl::StrCat(text, WhoIsHere(candidates));
}

}  // namespace

bool NaturalLess(absl::string_view a, absl::string_view b) {
  const absl::string_view whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (absl::ascii_isdigit(a[0]) && absl::ascii_isdigit(b[0])) {
      const absl::string_view x = TakeNumber(&a), y = TakeNumber(&b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "node07" and "node7" are two hosts.
}

std::string NameSome(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  std::string text = absl::StrJoin(names.begin(), names.begin() + shown, ", ");
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

GrowthVerdict DecideGrowth(const std::vector<Candidate>& waiting, const QuorumRule& rule,
                           Instant now) {
  std::vector<std::string> names;
  std::optional<Instant> first;
  for (const Candidate& c : waiting) {
    if (!c.present) continue;
    names.emplace_back(c.host);
    first = std::min(first.value_or(c.since), c.since);
  }
  const int most = MultipleBelow(rule.max_nodes, rule);
  if (names.empty() || rule.previous_nodes >= most) return {};
  const int here = rule.previous_nodes + static_cast<int>(names.size());
  const int next = MultipleBelow(std::min(here, most), rule);
  std::sort(names.begin(), names.end(), NaturalLess);
  if (next <= rule.previous_nodes) {
    return {{},
            absl::StrCat(NameSome(names), " joined: the next round would have ",
                         rule.previous_nodes + rule.node_multiple, " nodes"),
            absl::StrCat("which takes ", rule.previous_nodes + rule.node_multiple - here, " more")};
  }
  const bool all_here = next == most || here >= rule.expected_nodes;
  const Instant called = all_here ? now : *first + rule.last_call;
  return {
      std::max(called, rule.grows_from),
      absl::StrCat(NameSome(names), " joined: from ", rule.previous_nodes, " to ", next, " nodes"),
      rule.grows_from > std::max(called, now) ? "the last one grew not long before"
      : called > now                          ? "more may come"
                                              : ""};
}

QuorumVerdict DecideQuorum(const std::vector<Candidate>& candidates, const QuorumRule& rule,
                           Instant now) {
  std::vector<size_t> chosen;
  int back = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].present) continue;
    chosen.push_back(i);
    if (candidates[i].held_rank) ++back;
  }
  const int present = static_cast<int>(chosen.size());
  const int size = MultipleBelow(std::min(present, rule.max_nodes), rule);
  if (size < rule.min_nodes) return {{}, {}, WaitingReason(candidates, rule, present)};

  const bool all_back = rule.previous_nodes > 0 && back == rule.previous_nodes;
  if (present < std::min(rule.max_nodes, rule.expected_nodes) && !all_back) {
    std::vector<Instant> since;
    for (size_t index : chosen) since.push_back(candidates[index].since);
    std::nth_element(since.begin(), since.begin() + (rule.min_nodes - 1), since.end());
    const Instant ends = since[rule.min_nodes - 1] + rule.last_call;
    if (now < ends) {
      return {{},
              ends,
              absl::StrCat("last call: ", present, " of ", rule.min_nodes, " to ", rule.max_nodes,
                           " nodes may start", WhoIsHere(candidates))};
    }
  }
  std::sort(chosen.begin(), chosen.end(),
            [&](size_t a, size_t b) { return ComesFirst(candidates[a], candidates[b]); });
  chosen.resize(size);
  QuorumVerdict verdict{InRankOrder(candidates, chosen), {}, ""};
  verdict.reason = absl::StrCat("starting with ", chosen.size(),
                                chosen.size() == 1 ? " node" : " nodes", WhoIsHere(candidates));
  return verdict;
}

}  // namespace hlaunch
