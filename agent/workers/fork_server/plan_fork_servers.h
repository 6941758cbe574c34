// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/workers/fork_server/python_call.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/worker_spec.h"

namespace hlaunch {

// One fork server of this node. A value.
struct ForkServerPlan {
  // Python as the ranks call it, with the variables that all of them have in every round. Its
  // descriptors are not set.
  Command command;
  PythonCall call;
  Preload preload;
  std::vector<std::string> unshared;  // The names of the other variables that ranks have.
  int ranks = 1;                      // How many ranks it makes in a round.

  // True if a server that was made by `other` serves as well.
  bool IsServedBy(const ForkServerPlan& other) const;
};

// Which fork servers this node needs. A value.
struct ForkServerPlans {
  std::vector<ForkServerPlan> plans;
  std::string why_not;  // Why some ranks, or all, start without; empty if none does.
};

// Decides which of the `ranks`, by local rank, can be forked, and from what: one server for each
// NUMA node whose memory they prefer. Pure.
ForkServerPlans PlanForkServers(const Preload& preload, const std::vector<Command>& ranks);

// The modules as a fork server is told them: with commas between them, or "auto". Pure.
std::string NamesOf(const Preload& preload);

// True if a server of `plan` can become this rank. Pure.
bool CanBecome(const ForkServerPlan& plan, const Command& rank);

}  // namespace hlaunch
