// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/round.h"

namespace hlaunch {

// How something stands, for a colour: words say the same.
enum class Light { kGood, kWaiting, kBad, kIdle };

// One node of which all is shown.
struct NodeRow {
  std::string rank;  // Of the node; "-": it is not in the round.
  std::string host;
  std::string ranks;  // Of its workers: "8-15"; empty: it is not in the round.
  std::string state;
  Light light = Light::kIdle;
  std::string note;  // Why it is drained, or which of its workers failed; mostly empty.
  // A letter for each of its workers, at most kMostCells; a failed one has X.
  std::string cells;
};
inline constexpr size_t kMostCells = 64;

// Nodes that are alike, of which only the number is shown.
struct NodeFold {
  int nodes = 0, workers = 0;
  std::string state;
  Light light = Light::kIdle;
  std::string hosts;  // "node0-node6, node8", of many the first.
};

// The nodes of a job: few are shown one by one; of many the odd ones, and those that are alike are
// folded. A value.
struct NodeGroups {
  std::vector<NodeRow> rows;
  std::vector<NodeFold> folds;
  int unlisted = 0;  // That are here besides.
};

// All texts are printable. Pure.
NodeGroups GroupNodes(const JobStatus& status);

// How a node stands by its state in words.
Light LightOf(const std::string& state);

// "node0-node6, node8, head": numbers that follow each other as a range; at most `most` pieces.
std::string CompactNames(const std::vector<std::string>& names, size_t most);

}  // namespace hlaunch
