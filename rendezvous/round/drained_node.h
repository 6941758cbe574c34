// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "proto/base/clock.h"
#include "proto/contract/ids.h"

// Nodes that are not to be used any more though they live. Plain values.

namespace hlaunch {

// One agent, for its life.
struct DrainedNode {
  std::string node_id;
  Incarnation incarnation = 0;
  std::string reason;  // One line, not empty.
  Duration within{};   // Until then it is gone, from the first word on; zero: that is not known.
  bool own = false;    // By its own word, which it repeats; else by request.
};

// What a person asks for.
struct DrainRequest {
  std::string node;    // A host name, a node id, or a node rank of the latest round.
  std::string reason;  // One line.
  Duration within{};   // As DrainedNode has it.
  bool undrain = false;
};

}  // namespace hlaunch
