// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "agent/agent.h"

namespace hlaunch {

// What a node that begins again tells itself: JoinAgain::used. No worker sees it.
inline constexpr char kEnvRestartsUsed[] = "HLAUNCH_RESTARTS_USED";

// Whether a node begins afresh where it had no part in the end of its job. A value.
struct JoinAgain {
  bool joins = false;
  int used = 0;        // Restarts that count as used up then.
  std::string reason;  // One line for the log; empty: it does not join.
};

// Decides it by how the agent's part ended. The host of the rendezvous was replaced, in Kubernetes
// above all, and what answers in its place knows nothing of this node's round: with restarts left
// the node joins that one, and this costs a restart. Where nobody answers it waits only `in_pod`,
// since elsewhere nobody replaces a host. `used`: what was used up before. No worker of this node
// lives by then, so it is never in two rounds. Pure.
JoinAgain DecideJoinAgain(const AgentResult& result, int used, int max_restarts, bool in_pod);

}  // namespace hlaunch
