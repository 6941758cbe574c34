// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The signals that make hlaunch end its node's part in the job; it sends the same signal to the
// workers. They are the signals that the user named, else torchrun's four. `named` below is what
// the user named; if it is empty, SIGUSR1, SIGUSR2, SIGCONT and SIGWINCH are taken as well and
// passed on to the workers, and they end nothing. If the user named any, only those are taken:
// every other signal keeps its default action. If such a signal kills the keeper or the agent, the
// other one ends what is left.
using SignalNumbers = std::vector<int>;
SignalNumbers EndingSignals(const SignalNumbers& named);

// Blocks the signals that the keeper forwards and the agent takes, except ignored ones (nohup's
// SIGHUP): if those were blocked, they would be queued after all. Call this in main's first line,
// so that no signal is lost before RunUnderKeeper, which does the same. A second call unblocks the
// signals that `named` leaves out.
void BlockAgentSignals(const SignalNumbers& named = {});

// Returns true if a signal that asks hlaunch to end waits in AgentSignals().
bool TerminationPending(const SignalNumbers& named = {});

// Opens a non-blocking descriptor that delivers the agent's signals as signalfd_siginfo: SIGCHLD,
// and those that ask hlaunch for something. Also works right after an exec.
//
// Errors: ResourceExhausted.
absl::StatusOr<UniqueFd> AgentSignals(const SignalNumbers& named = {});

}  // namespace hlaunch
