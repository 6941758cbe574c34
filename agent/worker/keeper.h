// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "agent/worker/keeper_link.h"
#include "agent/worker/taken_signals.h"

// The agent's tiny parent. A parent-death signal is not inherited by grandchildren and a dead
// subreaper reaps nothing, so an agent is two processes: whichever of them is killed, the
// other ends what is left.
//
//   keeper (subreaper)  waits, forwards signals, returns the exit status
//     +- agent (own session, subreaper)
//          +- workers (own session each, die with the agent) - what they fork
//
//   The agent dies: its workers get SIGKILL from the kernel, all else reparents to the keeper,
//     which kills and reaps until none is left, then runs the obituary.
//   The agent stands still: it allows its workers to live for a while at a time
//     (KeeperLink::ShowLife). When that is over, the keeper kills them, then the agent.
//   The keeper dies: KeeperLink::fd() becomes readable; the agent has to stop its workers.
//   Both are killed at once: the workers still die; what they forked does not.

namespace hlaunch {

// Splits this process in two. In the child, the agent, runs `agent` and returns what it
// returned. In the parent, the keeper, returns once nothing of the agent is left: the agent's
// exit code, or kExitAgentLost if it was killed. So `return RunUnderKeeper(…)` is right in both.
//
// In the agent the signals that the keeper forwards, and SIGCHLD, are blocked; read them from
// AgentSignals(). Signals that were ignored before (nohup) stay ignored.
//
// Requires: called first thing, before a second thread exists.
// The keeper closes all descriptors but the standard ones and those that are `kept`.
int RunUnderKeeper(absl::FunctionRef<int(KeeperLink)> agent, const SignalNumbers& named = {},
                   std::vector<int> kept = {});

}  // namespace hlaunch
