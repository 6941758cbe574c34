// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"

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
//   The keeper dies: KeeperLink::fd() becomes readable; the agent has to stop its workers.
//   Both are killed at once: the workers still die; what they forked does not.

namespace hlaunch {

// The agent's end of the bond with its keeper. A movable value of the agent's process.
class KeeperLink {
 public:
  explicit KeeperLink(UniqueFd socket) : socket_(std::move(socket)) {}

  // The link of an agent that was exec'ed with ForExec() in its environment. Removes it there.
  //
  // Errors:
  //   NotFound - HLAUNCH_KEEPER_FD is not set: this process has no keeper.
  //   InvalidArgument - it does not name a keeper's socket.
  static absl::StatusOr<KeeperLink> FromEnv();

  // `HLAUNCH_KEEPER_FD=n` for the environment of a program that this process is about to exec
  // as the agent. The descriptor stays open over that exec.
  std::string ForExec();

  // Readable once the keeper is dead, and never before. Do not read from it.
  int fd() const { return socket_.get(); }

  // Has the keeper run `argv` if the agent is killed, after all else has ended, for at most
  // 5 s. `env` is added to the keeper's own environment: secrets belong there, argv
  // is public. The last call counts.
  //
  // Errors:
  //   InvalidArgument - more than kMaxObituaryBytes.
  //   Unavailable - the keeper is dead.
  absl::Status RegisterObituary(const std::vector<std::string>& argv,
                                const std::vector<std::string>& env) const;

 private:
  UniqueFd socket_;
};

inline constexpr size_t kMaxObituaryBytes = 64 * 1024;

// The signals by which hlaunch ends its node's part in the job, sending the workers the same one:
// those that the user named, or torchrun's four. Each function below is told what the user
// named; empty: nothing. Then SIGUSR1, SIGUSR2, SIGCONT and SIGWINCH are taken as well, and
// passed on to the workers, without an end. Where the user named any, those are all that is taken:
// every other signal keeps its default action, and the keeper and the agent each end what the
// other leaves if that kills it.
using SignalNumbers = std::vector<int>;
SignalNumbers EndingSignals(const SignalNumbers& named);

// Splits this process in two. In the child, the agent, runs `agent` and returns what it
// returned. In the parent, the keeper, returns once nothing of the agent is left: the agent's
// exit code, or kExitAgentLost if it was killed. So `return RunUnderKeeper(…)` is right in both.
//
// In the agent the signals that the keeper forwards, and SIGCHLD, are blocked; read them from
// AgentSignals(). Signals that were ignored before (nohup) stay ignored.
//
// Requires: called first thing, before a second thread exists.
int RunUnderKeeper(absl::FunctionRef<int(KeeperLink)> agent, const SignalNumbers& named = {});

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
