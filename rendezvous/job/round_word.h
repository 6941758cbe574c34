// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "proto/contract/ids.h"

namespace hlaunch {

inline constexpr size_t kMaxRoundWordBytes = 32 << 10;

// What the nodes of a round tell each other through the rendezvous, which does not read it: what
// node rank 0 says reaches all other nodes, and what these say reaches node rank 0. A word replaces
// the former one of the same node, and may be lost: who says it repeats it from time to time. A
// value.
struct RoundWord {
  Round round = 0;
  int node_rank = 0;  // Who says it. The rendezvous fills it in.
  std::string text;   // At most kMaxRoundWordBytes.
};

}  // namespace hlaunch
