// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "agent/observe/node_event.h"

namespace hlaunch {

// Decides which events of a node its job's receiver is told of: those of the job as a whole, by
// node rank 0 alone. Before ranks are known, the node speaks that has the job's rendezvous; where
// that is a service, no node does, but one that fails then.
//
// A value.
class EventChoice {
 public:
  // `speaks_first`: it speaks before it knows its rank.
  explicit EventChoice(bool speaks_first) : speaks_first_(speaks_first) {}

  // Whether `event`, the next, is told.
  bool Tells(const NodeEvent& event);

 private:
  const bool speaks_first_;
  std::optional<int> node_rank_;
};

}  // namespace hlaunch
