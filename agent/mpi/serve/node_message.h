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

// What a node tells the others when all its ranks have entered a barrier. The first such message
// has no pairs; the node sends it when one of its ranks has called MPI_Init. A value.
struct NodeMessage {
  int nproc = 0;               // Workers of the node.
  std::string kvs_name;        // The round's name, from node rank 0 in its first message.
  std::vector<PmiPair> pairs;  // What its ranks have put since the last message.
  // Why the node will never enter a barrier: "rank 3 exited with code 0 before MPI_Init". Mostly
  // empty.
  std::string absent;
};

// All messages of one barrier, or of the start, in the order of node ranks.
using NodeMessages = std::vector<NodeMessage>;

std::string EncodeMessage(const NodeMessage& message);

// The reverse, for the messages of all nodes, one after the other.
//
// Errors:
//   InvalidArgument - `text` is something else, or not from `nodes` nodes.
absl::StatusOr<NodeMessages> DecodeMessages(absl::string_view text, int nodes);

}  // namespace hlaunch
