// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

using PmiPair = std::pair<std::string, std::string>;  // Key and value.

// What a node tells the others as all its ranks have come to a barrier; the first such message, as
// one of them comes to MPI_Init, has no pairs. A value.
struct NodeMessage {
  int nproc = 0;               // Workers of the node.
  std::string kvs_name;        // The round's, of node rank 0 in its first message.
  std::vector<PmiPair> pairs;  // What its ranks have put since the last.
  // Why it will never come to a barrier: "rank 3 exited with code 0 before MPI_Init". Mostly empty.
  std::string absent;
};

// All of a barrier, or of the beginning, in the order of node ranks.
using NodeMessages = std::vector<NodeMessage>;

std::string EncodeMessage(const NodeMessage& message);

// The reverse, of as many of those as there are nodes, one after the other.
//
// Errors:
//   InvalidArgument - it is something else, or not from `nodes` nodes.
absl::StatusOr<NodeMessages> DecodeMessages(absl::string_view text, int nodes);

}  // namespace hlaunch
