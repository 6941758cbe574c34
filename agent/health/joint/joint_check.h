// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/health/joint/joint_report.h"
#include "proto/base/clock.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

// What a node must know to check itself together with the others of a round. A value.
struct JointPlan {
  std::string master;  // A literal: where the master store of the round is.
  uint16_t port = 0;
  Round round = 0;
  int node_rank = 0;
  int size = 1;
  std::string host;   // This one's name, for the others.
  bool full = false;  // Pairs are measured in any case, and for longer; all know all figures.
  NodeFigures figures = {};  // What this node has measured of itself.
};

// Connects to the store where they meet, trying for `limit`. Errors: as C10dClient.
absl::StatusOr<std::unique_ptr<Store>> ConnectToStore(const JointPlan& plan, Duration limit);

// How long CheckTogether may take.
Duration JointLimit(bool full);

// All nodes of a round call it at about the same time. They meet at the master store, add known
// numbers together by comm, and, if the sum is not exact or `full`, measure each other in pairs,
// over TCP. No node is waited for beyond a deadline; one that does not come, or leaves early, is
// named in the report. Afterwards the store is as it was.
//
// Blocks; see JointLimit. Not for the agent's own process: what it needs of memory and time is the
// network's to say.
JointReport CheckTogether(const JointPlan& plan);

// The same at a store that is there, as `address`, a literal of this host. For tests.
JointReport CheckTogether(const JointPlan& plan, std::shared_ptr<Store> store,
                          const std::string& address);

}  // namespace hlaunch
