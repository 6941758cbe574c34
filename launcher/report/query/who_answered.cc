// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/query/who_answered.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "launcher/text/printable.h"
#include "nlohmann/json.hpp"
#include "proto/contract/rank_list.h"

namespace hlaunch {
namespace {

constexpr size_t kMostHosts = 4;
constexpr size_t kMostSilent = 16;

std::vector<Rank> RanksOf(const NodeWord& node) {
  std::vector<Rank> ranks(static_cast<size_t>(node.nproc));
  std::iota(ranks.begin(), ranks.end(), node.first_rank);
  return ranks;
}

// `nodes` are in the order of their ranks.
const NodeWord* NodeOf(Rank rank, const std::vector<NodeWord>& nodes) {
  const auto after =
      std::upper_bound(nodes.begin(), nodes.end(), rank,
                       [](Rank one, const NodeWord& node) { return one < node.first_rank; });
  return after == nodes.begin() ? nullptr : &*std::prev(after);
}

std::string RanksText(const std::vector<Rank>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", RankList(ranks));
}

}  // namespace

absl::Status CheckRanks(const RankQuestion& question, const JobAnswer& answer) {
  if (answer.world_size == 0 || question.ranks.empty()) return absl::OkStatus();
  const Rank last = question.ranks.back();
  if (last < answer.world_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--rank ", last, ": round ", answer.round, " has ",
                                                 answer.world_size, " ranks, from 0 on"));
}

std::string HeadOf(const std::string& job_id, const JobAnswer& answer) {
  const std::string job = absl::StrCat("job ", PrintableLine(job_id));
  if (answer.world_size == 0) {
    return absl::StrCat(job, ": no worker runs: ", PrintableLine(answer.explanation), "\n");
  }
  return absl::StrCat(job, ", round ", answer.round, ": ", answer.world_size,
                      answer.world_size == 1 ? " worker\n" : " workers\n");
}

std::string NameOf(const std::vector<Rank>& ranks, const JobAnswer& answer) {
  std::vector<std::string> hosts;
  for (const Rank rank : ranks) {
    const NodeWord* node = NodeOf(rank, answer.nodes);
    if (node == nullptr || (!hosts.empty() && hosts.back() == node->host)) continue;
    hosts.push_back(node->host);
  }
  const size_t more = hosts.size() - std::min(hosts.size(), kMostHosts);
  hosts.resize(hosts.size() - more);
  return absl::StrCat(RanksText(ranks), hosts.empty() ? "" : " (", absl::StrJoin(hosts, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "",
                      hosts.empty() ? "" : ")");
}

std::string SilentText(const JobAnswer& answer) {
  std::string text;
  size_t silent = 0;
  for (const NodeWord& node : answer.nodes) {
    if (node.problem.empty() || ++silent > kMostSilent) continue;
    absl::StrAppend(&text, node.host, " (", RanksText(RanksOf(node)), ") ", node.problem, "\n");
  }
  if (silent > kMostSilent) {
    absl::StrAppend(&text, "and ", silent - kMostSilent, " more nodes have not answered\n");
  }
  return text;
}

nlohmann::ordered_json HeadJson(const std::string& job_id, const JobAnswer& answer) {
  nlohmann::ordered_json json = {{"job_id", job_id},
                                 {"round", answer.round},
                                 {"world_size", answer.world_size},
                                 {"explanation", answer.explanation}};
  json["silent"] = nlohmann::ordered_json::array();
  for (const NodeWord& node : answer.nodes) {
    if (node.problem.empty()) continue;
    json["silent"].push_back({{"host", node.host},
                              {"node_rank", node.node_rank},
                              {"ranks", RanksOf(node)},
                              {"reason", node.problem}});
  }
  return json;
}

}  // namespace hlaunch
