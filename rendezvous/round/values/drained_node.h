// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"

// Nodes that must not be used any more, although they live. Plain values.

namespace hlaunch {

// A drained agent. A later incarnation of the same node is not drained.
struct DrainedNode {
  std::string node_id;
  Incarnation incarnation = 0;
  std::string reason;  // One line, not empty.
  Duration within{};   // Counted from the first notice: by then it is gone. Zero if unknown.
  bool own = false;    // The node said so itself, and repeats it; false if a person asked.
};

// The request of a person.
struct DrainRequest {
  std::string node;    // A host name, a node id, or a node rank of the latest round.
  std::string reason;  // One line.
  Duration within{};   // As in DrainedNode.
  bool undrain = false;
};

}  // namespace hlaunch
