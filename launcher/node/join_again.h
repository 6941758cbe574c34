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

// What a node knows about its job besides how its own agent ended.
struct JobSight {
  bool in_pod = false;      // Kubernetes starts a host that is lost again.
  bool round_begun = true;  // A round may have begun, here or on other nodes.
};

// Decides by how the agent ended. If the host of the rendezvous was replaced, as in Kubernetes, the
// new rendezvous does not know this node's round. If restarts are left, the node then joins the new
// rendezvous, which costs a restart. If no rendezvous answers, the node joins again only in a pod,
// because elsewhere a host is not replaced, or if no round had begun: then nothing is lost, it
// costs no restart, and the node waits as it did for the first host. `used` is the number of
// restarts used before. No worker of this node lives at this time, so the node is never in two
// rounds. Pure.
JoinAgain DecideJoinAgain(const AgentResult& result, int used, int max_restarts,
                          const JobSight& sight);

}  // namespace hlaunch
