// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/agent.h"

namespace hlaunch {

// The variable in which a node that begins again passes JoinAgain::used to itself. No worker sees
// it.
inline constexpr char kEnvRestartsUsed[] = "HLAUNCH_RESTARTS_USED";

// Whether a node joins again after it lost its job's rendezvous. A value.
struct JoinAgain {
  bool joins = false;
  int used = 0;        // The restarts that count as used then.
  std::string reason;  // One line for the log. Empty if the node does not join.
};

// Decides by how the agent ended. If the host of the rendezvous was replaced, as in Kubernetes, the
// new rendezvous does not know this node's round. If restarts are left, the node then joins the new
// rendezvous, which costs a restart. If no rendezvous answers, the node joins again only `in_pod`,
// because elsewhere a host is not replaced. `used` is the number of restarts used before. No worker
// of this node lives at this time, so the node is never in two rounds. Pure.
JoinAgain DecideJoinAgain(const AgentResult& result, int used, int max_restarts, bool in_pod);

}  // namespace hlaunch
