// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "agent/worker/keeper_link.h"
#include "agent/worker/taken_signals.h"

// The keeper is the agent's tiny parent. Grandchildren do not inherit a parent-death signal, and a
// dead subreaper reaps nothing. So an agent is two processes: if either is killed, the other ends
// what is left.
//
//   keeper (subreaper)  waits, forwards signals, returns the exit status
//     +- agent (own session, subreaper)
//          +- workers (own session each, die with the agent) - the processes they fork
//
//   The agent dies: the kernel sends its workers SIGKILL, all other processes reparent to the
//     keeper, which kills and reaps until none is left, then runs the obituary.
//   The agent stands still: it regularly allows its workers to live for a limited time
//     (KeeperLink::ShowLife). When that time is over, the keeper kills the workers, then the agent.
//   The keeper dies: KeeperLink::fd() becomes readable; the agent has to stop its workers.
//   Both are killed at once: the workers still die; the processes they forked do not.

namespace hlaunch {

// Splits this process in two. The child, the agent, runs `agent` and returns its result. The
// parent, the keeper, returns once no process of the agent is left: the agent's exit code, or
// kExitAgentLost if the agent was killed. So `return RunUnderKeeper(…)` is right in both.
//
// In the agent, SIGCHLD and the signals that the keeper forwards are blocked; read them from
// AgentSignals(). Signals that were ignored before (nohup) stay ignored.
//
// Requires: called first thing, before a second thread exists.
// The keeper closes all descriptors except the standard ones and those in `kept`.
int RunUnderKeeper(absl::FunctionRef<int(KeeperLink)> agent, const SignalNumbers& named = {},
                   std::vector<int> kept = {});

}  // namespace hlaunch
