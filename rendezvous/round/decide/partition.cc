// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/decide/partition.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/round/values/limits.h"
#include "rendezvous/round/values/quorum.h"

namespace hlaunch {
namespace {

using Nodes = std::vector<WaysWord>;
using Kind = PartitionVerdict::Kind;
using Way = std::pair<int, int>;

constexpr size_t kNamed = 3;  // At most this many paths are named.
constexpr char kAllReachIt[] = ", though all reach the rendezvous";

const WaysWord& At(const Nodes& nodes, int rank) { return nodes[static_cast<size_t>(rank)]; }

// Returns each pair (a, b) for which node a reports that it does not reach b, if both are heard.
std::set<Way> Claims(const Nodes& nodes) {
  std::set<Way> claims;
  const int size = static_cast<int>(nodes.size());
  for (int from = 0; from < size; ++from) {
    if (!At(nodes, from).heard) continue;
    for (const int to : At(nodes, from).unreached) {
      if (to < 0 || to >= size || to == from || !At(nodes, to).heard) continue;
      claims.emplace(from, to);
    }
  }
  return claims;
}

// The nodes of each part, the largest part first.
std::vector<std::vector<int>> Parts(int size, const std::set<Way>& claims) {
  std::vector<int> leader(static_cast<size_t>(size));
  std::iota(leader.begin(), leader.end(), 0);
  const auto leader_of = [&](int node) {
    while (leader[static_cast<size_t>(node)] != node) node = leader[static_cast<size_t>(node)];
    return node;
  };
  for (int a = 0; a < size; ++a) {
    for (const int b : WaysToLookAt(a, size)) {
      const bool cut = claims.contains({a, b}) && claims.contains({b, a});
      const auto [low, high] = std::minmax({leader_of(a), leader_of(b)});
      if (!cut) leader[static_cast<size_t>(high)] = low;
    }
  }
  std::map<int, std::vector<int>> by_leader;
  for (int node = 0; node < size; ++node) by_leader[leader_of(node)].push_back(node);
  std::vector<std::vector<int>> parts;
  for (auto& [first, part] : by_leader) parts.push_back(std::move(part));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return parts;
}

std::string NamesOf(const Nodes& nodes, const std::vector<int>& ranks) {
  std::vector<std::string> hosts;
  for (const int rank : ranks) hosts.push_back(At(nodes, rank).host);
  return NameSome(hosts);
}

// "node0 and node1 do not reach each other; node2 does not reach node3, by its own word".
std::string DescribeWays(const Nodes& nodes, const std::set<Way>& claims) {
  std::vector<std::string> both, one;
  for (const auto& [from, to] : claims) {
    const std::string &a = At(nodes, from).host, &b = At(nodes, to).host;
    if (!claims.contains({to, from})) {
      one.push_back(absl::StrCat(a, " does not reach ", b, ", by its own word"));
    } else if (from < to) {
      both.push_back(absl::StrCat(a, " and ", b, " do not reach each other"));
    }
  }
  both.insert(both.end(), one.begin(), one.end());
  const size_t more = both.size() - std::min(both.size(), kNamed);
  both.resize(both.size() - more);
  return absl::StrCat(absl::StrJoin(both, "; "),
                      more > 0 ? absl::StrCat("; and ", more, " more ways") : "", kAllReachIt);
}

// Returns why the nodes that are cut off stay in the job; empty if they do not.
std::string WhyKept(const Nodes& nodes, const std::vector<int>& cut_off,
                    const PartitionRule& rule) {
  const auto stays = [&](int rank) { return At(nodes, rank).stays; };
  const int left = static_cast<int>(nodes.size() - cut_off.size()) + rule.standing_by;
  if (rule.action == PreflightAction::kWarn) return "--on-partition warn";
  if (std::any_of(cut_off.begin(), cut_off.end(), stays)) return "the rendezvous is among them";
  if (left < rule.min_nodes) return "the job cannot do without";
  if (!rule.may_restart) return "no restart is left";
  return "";
}

// The judgement if the largest part has more than half of all nodes.
PartitionVerdict JudgeCutOff(const Nodes& nodes, const std::vector<std::vector<int>>& parts,
                             const PartitionRule& rule) {
  PartitionVerdict verdict;
  std::vector<int>& cut_off = verdict.cut_off;
  for (size_t i = 1; i < parts.size(); ++i) {
    cut_off.insert(cut_off.end(), parts[i].begin(), parts[i].end());
  }
  std::sort(cut_off.begin(), cut_off.end());
  const bool one = cut_off.size() == 1;
  const std::string rest = absl::StrCat(" cut off from ", NamesOf(nodes, parts[0]), kAllReachIt);
  verdict.reason = absl::StrCat(NamesOf(nodes, cut_off), one ? " is" : " are", rest);
  const std::vector<int> others(cut_off.begin() + 1, cut_off.end());
  verdict.of_first =
      absl::StrCat(one ? "" : absl::StrCat("with ", NamesOf(nodes, others), " "), "it is", rest);
  verdict.kind = Kind::kFail;
  if (rule.action == PreflightAction::kFail) return verdict;
  const std::string why = WhyKept(nodes, cut_off, rule);
  verdict.kind = why.empty() ? Kind::kExclude : Kind::kName;
  if (why.empty()) return verdict;
  cut_off.clear();
  absl::StrAppend(&verdict.reason, "; nobody is excluded: ", why);
  return verdict;
}

}  // namespace

std::vector<int> WaysToLookAt(int rank, int size) {
  constexpr int kFew = static_cast<int>(kMaxUnreached);  // This many others are all looked at.
  std::set<int> ranks;
  for (int step = 1; step < size; size - 1 <= kFew ? ++step : step *= 2) {
    ranks.insert((rank + step) % size);
    ranks.insert((rank + size - step % size) % size);
  }
  return {ranks.begin(), ranks.end()};
}

PartitionVerdict DecidePartition(const Nodes& nodes, const PartitionRule& rule) {
  PartitionVerdict verdict;
  const std::set<Way> claims = Claims(nodes);
  if (claims.empty()) return verdict;
  const auto by_one = [&](const Way& way) { return !claims.contains({way.second, way.first}); };
  verdict.kind = Kind::kWait;
  if (!rule.all_have_spoken && std::any_of(claims.begin(), claims.end(), by_one)) return verdict;
  const std::vector<std::vector<int>> parts = Parts(static_cast<int>(nodes.size()), claims);
  if (parts.size() > 1 && parts[0].size() * 2 > nodes.size()) {
    return JudgeCutOff(nodes, parts, rule);
  }
  const bool proven = !std::all_of(claims.begin(), claims.end(), by_one);
  const bool fail = proven && rule.action == PreflightAction::kFail;
  verdict.kind = fail ? Kind::kFail : Kind::kName;
  verdict.reason = DescribeWays(nodes, claims);
  if (fail) return verdict;
  absl::StrAppend(&verdict.reason, "; nobody is excluded: ",
                  parts.size() > 1 ? "no side has more than half of the nodes"
                                   : "none of them is cut off from all others");
  return verdict;
}

}  // namespace hlaunch
