// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/health/joint/joint_report.h"
#include "proto/base/clock.h"
#include "rendezvous/store/keys/store.h"

namespace hlaunch {

// What a node must know to take part in a joint check. A value.
struct JointPlan {
  std::string master;  // Address of the round's master store, a literal.
  uint16_t port = 0;
  Round round = 0;
  int node_rank = 0;
  int size = 1;
  std::string host;   // This node's name, for the others.
  bool full = false;  // Pairs are always measured, and for longer; all nodes learn all figures.
  NodeFigures figures = {};  // What this node has measured on itself.
};

// Connects to the store where the nodes meet, retrying for `limit`. Errors: as C10dClient.
absl::StatusOr<std::unique_ptr<Store>> ConnectToStore(const JointPlan& plan, Duration limit);

// The longest that CheckTogether may take.
Duration JointLimit(bool full);

// All nodes of a round call this at about the same time. They meet at the master store, add known
// numbers together by comm, and, if the sum is not exact or the check is `full`, measure each other
// in pairs over TCP. No node is waited for beyond a deadline. A node that does not come, or leaves
// early, is named in the report. Afterwards the store is as it was.
//
// Blocks; see JointLimit. Do not call it in the agent's own process: how much memory and time it
// takes depends on the network.
JointReport CheckTogether(const JointPlan& plan);

// The same with a store that is already connected. `address` is a literal of this host. The first
// node gives the others at most `farewell` to read the last answer. For tests.
JointReport CheckTogether(const JointPlan& plan, std::shared_ptr<Store> store,
                          const std::string& address, Duration farewell);

}  // namespace hlaunch
