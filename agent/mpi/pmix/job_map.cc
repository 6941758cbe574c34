// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmix/job_map.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

constexpr int kMostWorkers = 1 << 20;  // On all nodes together, whatever they say.

// Makes a name that libpmix's grammar accepts: people do not see a replaced name anyway.
std::string PlainHost(absl::string_view host, size_t node) {
  const bool plain = !host.empty() && std::all_of(host.begin(), host.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
  });
  return plain ? std::string(host) : absl::StrCat("node", node);
}

}  // namespace

JobMap::JobMap(std::vector<Node> nodes) : nodes_(std::move(nodes)) {
  std::set<std::string> seen;
  std::map<std::string, int> told;
  for (const Node& node : nodes_) ++told[node.host];
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    shares_host_.push_back(told[node.host] > 1);
    node.host = PlainHost(node.host, i);
    if (!seen.insert(node.host).second) node.host += absl::StrCat(".", i);
    first_ranks_.push_back(world_size_);
    world_size_ += node.nproc;
  }
}

std::string JobMap::ToLine(const Node& node) {
  return absl::StrCat(node.nproc, " ", node.name_space, " ", node.host, "\n");
}

absl::StatusOr<JobMap> JobMap::FromLines(absl::string_view lines, int num_nodes) {
  std::vector<Node> nodes;
  int all = 0;
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
    Node node;
    const bool good = words.size() == 3 && absl::SimpleAtoi(words[0], &node.nproc) &&
                      node.nproc > 0 && node.nproc <= kMostWorkers - all;
    if (!good) return absl::InvalidArgumentError("a node says of its workers what cannot be");
    node.name_space = words[1];
    node.host = words[2];
    all += node.nproc;
    nodes.push_back(std::move(node));
  }
  if (nodes.size() != static_cast<size_t>(num_nodes)) {
    return absl::InvalidArgumentError(
        absl::StrCat(nodes.size(), " nodes have said how many workers they have, of ", num_nodes));
  }
  return JobMap(std::move(nodes));
}

std::string JobMap::Hosts() const {
  return absl::StrJoin(nodes_, ",", [](std::string* out, const Node& node) { *out += node.host; });
}

std::string JobMap::Ranks() const {
  std::vector<std::string> of_nodes;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<Rank> ranks(static_cast<size_t>(nodes_[i].nproc));
    std::iota(ranks.begin(), ranks.end(), first_ranks_[i]);
    of_nodes.push_back(absl::StrJoin(ranks, ","));
  }
  return absl::StrJoin(of_nodes, ";");
}

int JobMap::NodeOf(Rank rank) const {
  if (rank < 0 || rank >= world_size_) return -1;
  const auto after = std::upper_bound(first_ranks_.begin(), first_ranks_.end(), rank);
  return static_cast<int>(after - first_ranks_.begin()) - 1;
}

std::vector<int> JobMap::NodesOf(const std::vector<Rank>& ranks) const {
  std::set<int> nodes;
  for (const Rank rank : ranks) nodes.insert(NodeOf(rank));
  nodes.erase(-1);
  return {nodes.begin(), nodes.end()};
}

std::vector<int> JobMap::AllNodes() const {
  std::vector<int> all(nodes_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace hlaunch
