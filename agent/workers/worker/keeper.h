// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "agent/workers/worker/keeper_link.h"
#include "agent/workers/worker/taken_signals.h"
#include "proto/base/clock.h"

// The keeper is the agent's tiny parent. Grandchildren do not inherit a parent-death signal, and a
// dead subreaper reaps nothing. So an agent is two processes: if either is killed, the other ends
// what is left.
//
//   keeper (subreaper)  waits, forwards signals, returns the exit status
//     +- agent (own session, subreaper)
//          +- workers (own session each, die with the agent) - the processes they fork
//
//   The agent dies: the kernel sends its workers SIGKILL, all other processes reparent to the
//     keeper, which kills and reaps until none is left, then runs the death report.
//   The agent stands still: it regularly allows its workers to live for a limited time
//     (KeeperLink::ShowLife). When that time is over, the keeper kills the workers, then the agent.
//   The agent does not begin (KeeperLink::SayBegun): after kBeginTime, or a few seconds after a
//     signal that asks it to end, the keeper kills it.
//   The keeper dies: KeeperLink::fd() becomes readable; the agent has to stop its workers.
//   Both are killed at once: the workers still die; the processes they forked do not.

namespace hlaunch {

// An agent that has not begun after this time never will. Name servers and slow disks may delay it
// by half a minute.
inline constexpr Duration kBeginTime = std::chrono::minutes(2);

// Splits this process in two. The child, the agent, runs `agent` and returns its result. The
// parent, the keeper, returns once no process of the agent is left: the agent's exit code, or
// kExitAgentLost if the agent was killed, or kExitNoResources if it did not begin in time. So
// `return RunUnderKeeper(…)` is right in both. Without /proc it starts nothing: what workers leave
// behind could not be found.
//
// In the agent, SIGCHLD and the signals that the keeper forwards are blocked; read them from
// AgentSignals(). Signals that were ignored before (nohup) stay ignored.
//
// Requires: called first thing, before a second thread exists.
// The keeper closes all descriptors except the standard ones and those in `kept`.
int RunUnderKeeper(absl::FunctionRef<int(KeeperLink)> agent, const SignalNumbers& named = {},
                   std::vector<int> kept = {}, Duration begin_time = kBeginTime);

}  // namespace hlaunch
