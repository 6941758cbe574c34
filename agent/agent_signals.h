// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "agent/workers/worker/keeper.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What a signal asks of the agent.
enum class SignalRequest {
  kNothing,
  kReap,     // A child has ended.
  kForward,  // The workers get the signal; nothing else happens.
  kLeave,    // The node leaves the job: its workers get the signal, and later SIGKILL.
  kKill,     // The workers are killed now.
};

// Decides what each signal asks for. The first signal that asks for an end makes the node leave;
// another Ctrl-C kills the workers. A value: it does nothing by itself.
class SignalRules {
 public:
  explicit SignalRules(const SignalNumbers& named) : ending_(EndingSignals(named)) {}

  // `counts`: a SIGINT counts as a key press. scancel and systemd signal every process, so one
  // SIGINT of theirs arrives twice, directly and from the keeper; only the one that the keeper
  // forwards counts. They may repeat SIGTERM while the workers end, which asks for nothing more.
  // `is_ending`: the agent is already ending the workers, for good.
  SignalRequest Take(int signal, bool counts, bool is_ending);

 private:
  const SignalNumbers ending_;
  int first_ = 0;  // The signal that asked the node to leave.
  int ctrl_c_ = 0;
};

// Receives the agent's signals, and the end of its keeper, in the loop.
//
// Belongs to the loop thread.
class SignalListener {
 public:
  explicit SignalListener(asio::io_context& loop);
  ~SignalListener();

  // Calls `on_signal` with each signal of AgentSignals(named) and the process that sent it.
  //
  // Errors: ResourceExhausted.
  absl::Status Listen(const SignalNumbers& named,
                      std::function<void(int signal, pid_t sender)> on_signal);

  // Calls `on_death` once the keeper behind KeeperLink::fd() is dead. `keeper_fd` stays the
  // caller's.
  void WatchKeeper(int keeper_fd, std::function<void()> on_death);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
