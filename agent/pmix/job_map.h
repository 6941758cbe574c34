// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// Which ranks of a job are on which node, in one round. A value.
class JobMap {
 public:
  // What a node says of itself.
  struct Node {
    int nproc = 0;
    std::string name_space;  // New for every round; without blanks. Node rank 0's is that of all.
    std::string host;
  };

  // `nodes` in the order of their ranks. Two hosts of one name are told apart here.
  explicit JobMap(std::vector<Node> nodes);

  // One line with its end; and the reverse, of the lines of all.
  //
  // Errors:
  //   InvalidArgument - it is something else, or not from `num_nodes` nodes.
  static std::string ToLine(const Node& node);
  static absl::StatusOr<JobMap> FromLines(absl::string_view lines, int num_nodes);

  // Requires, as the following: there is a node.
  const std::string& name_space() const { return nodes_.front().name_space; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  int world_size() const { return world_size_; }
  const std::string& host(int node) const { return nodes_[static_cast<size_t>(node)].host; }

  // "node0,node1", and "0,1;2,3": the ranks of each node. As PMIx_generate_regex and _ppn read it.
  std::string Hosts() const;
  std::string Ranks() const;

  int NodeOf(Rank rank) const;  // -1: there is no such rank.

  // The nodes of `ranks`, ascending, each once. Ranks that are not there have none.
  std::vector<int> NodesOf(const std::vector<Rank>& ranks) const;
  std::vector<int> AllNodes() const;

 private:
  std::vector<Node> nodes_;
  std::vector<Rank> first_ranks_;  // By node.
  int world_size_ = 0;
};

}  // namespace hlaunch
