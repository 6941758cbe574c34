// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "agent/watch/observe/node_event.h"

namespace hlaunch {

// Decides which events of a node the job's receiver is told. Only node rank 0 tells, and only
// events of the job as a whole. Before ranks are known, the node that hosts the job's rendezvous
// tells. If the rendezvous is a separate service, no node tells then, except a node that fails.
//
// A value.
class EventChoice {
 public:
  // `speaks_first`: this node tells events before it knows its rank.
  explicit EventChoice(bool speaks_first) : speaks_first_(speaks_first) {}

  // True if `event`, the next event, is to be told.
  bool Tells(const NodeEvent& event);

 private:
  const bool speaks_first_;
  std::optional<int> node_rank_;
};

}  // namespace hlaunch
