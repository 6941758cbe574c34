// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// The ranks on each node of a job, in one round. A value.
class JobMap {
 public:
  // What a node tells about itself.
  struct Node {
    int nproc = 0;
    std::string name_space;  // New for every round; without blanks. All nodes use node rank 0's.
    std::string host;
  };

  // `nodes` are in the order of their ranks. Two hosts with the same name get different names here.
  explicit JobMap(std::vector<Node> nodes);

  // Converts a node to one line with its newline; and the lines of all nodes back.
  //
  // Errors:
  //   InvalidArgument - `lines` are something else, or not from `num_nodes` nodes.
  static std::string ToLine(const Node& node);
  static absl::StatusOr<JobMap> FromLines(absl::string_view lines, int num_nodes);

  // These functions require at least one node.
  const std::string& name_space() const { return nodes_.front().name_space; }
  int num_nodes() const { return static_cast<int>(nodes_.size()); }
  int world_size() const { return world_size_; }
  const std::string& host(int node) const { return nodes_[static_cast<size_t>(node)].host; }
  // Whether another node has told the same host.
  bool SharesHost(int node) const { return shares_host_[static_cast<size_t>(node)]; }

  // "node0,node1", and "0,1;2,3", the ranks of each node: the input of PMIx_generate_regex and
  // _ppn.
  std::string Hosts() const;
  std::string Ranks() const;

  int NodeOf(Rank rank) const;  // -1 if there is no such rank.

  // The nodes of `ranks`, ascending, each once. Ranks that do not exist are left out.
  std::vector<int> NodesOf(const std::vector<Rank>& ranks) const;
  std::vector<int> AllNodes() const;

 private:
  std::vector<Node> nodes_;
  std::vector<bool> shares_host_;  // By node.
  std::vector<Rank> first_ranks_;  // By node.
  int world_size_ = 0;
};

}  // namespace hlaunch
