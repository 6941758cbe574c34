// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/values/round.h"

namespace hlaunch {

// A state as a colour; the words next to it say the same.
enum class Light { kGood, kWaiting, kBad, kIdle };

// A node that is shown in full.
struct NodeRow {
  std::string rank;  // The node's; "-" if it is not in the round.
  std::string host;
  std::string ranks;  // The ranks of its workers: "8-15"; empty if it is not in the round.
  std::string state;
  Light light = Light::kIdle;
  std::string note;  // Why it is drained, or which of its workers failed; mostly empty.
  // A letter for each of its workers, at most kMostCells; a failed one has X.
  std::string cells;
};
inline constexpr size_t kMostCells = 64;

// Nodes that are alike, shown as one row with their number.
struct NodeFold {
  int nodes = 0, workers = 0;
  std::string state;
  Light light = Light::kIdle;
  std::string hosts;  // "node0-node6, node8"; of many, the first.
};

// The nodes of a job. If there are few, each is shown; if there are many, only the odd ones, and
// nodes that are alike are folded. A value.
struct NodeGroups {
  std::vector<NodeRow> rows;
  std::vector<NodeFold> folds;
  int unlisted = 0;  // The number of other nodes that are here.
};

// All texts are printable. Pure.
NodeGroups GroupNodes(const JobStatus& status);

// The colour for where a node stands.
Light LightOf(const NodeStatus& node);

// As in "node0-node6, node8, head": consecutive numbers form a range. Names at most `most` pieces.
std::string CompactNames(const std::vector<std::string>& names, size_t most);

}  // namespace hlaunch
