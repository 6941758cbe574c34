// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The signals by which hlaunch ends its node's part in the job, sending the workers the same one:
// those that the user named, or torchrun's four. Each function below is told what the user
// named; empty: nothing. Then SIGUSR1, SIGUSR2, SIGCONT and SIGWINCH are taken as well, and
// passed on to the workers, without an end. Where the user named any, those are all that is taken:
// every other signal keeps its default action, and the keeper and the agent each end what the
// other leaves if that kills it.
using SignalNumbers = std::vector<int>;
SignalNumbers EndingSignals(const SignalNumbers& named);

// Blocks the signals that the keeper forwards and the agent takes, except those that are ignored
// (nohup's SIGHUP): blocked, they would be queued after all. For main's first line, so that none
// is lost before RunUnderKeeper, which does the same. Called again, it frees those that `named`
// leaves out.
void BlockAgentSignals(const SignalNumbers& named = {});

// Whether a signal that asks hlaunch to end waits to be taken from AgentSignals().
bool TerminationPending(const SignalNumbers& named = {});

// A descriptor with the agent's signals as signalfd_siginfo, non-blocking: SIGCHLD, and those
// that ask hlaunch for something. Also right after an exec.
//
// Errors: ResourceExhausted.
absl::StatusOr<UniqueFd> AgentSignals(const SignalNumbers& named = {});

}  // namespace hlaunch
