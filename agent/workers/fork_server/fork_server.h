// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/workers/fork_server/plan_fork_servers.h"
#include "agent/workers/process/process.h"
#include "proto/base/clock.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A Python that has imported modules and becomes ranks by fork: children of this process, in
// sessions of their own, with the environment, descriptors and CPUs of their commands. It is a
// child of this process, and ends with it. It forks before there is a command: the forks wait, and
// are told which rank they are when their round starts, which takes no time.
//
// Belongs to the loop thread, which never waits for it. The destructor kills it and its waiting
// forks, and reaps them; its ranks live on.
class ForkServer {
 public:
  // Called from the loop.
  struct Events {
    std::function<void()> on_settled;  // Once: it is ready or will not be.
    std::function<void()> on_reaped;   // A process of it has ended and was reaped.
  };

  // Starts it with the modules that WritePythonSide wrote into `directory`. It may take minutes
  // until it is ready.
  ForkServer(asio::io_context& loop, ForkServerPlan plan, const std::string& directory,
             Events events);
  ~ForkServer();

  // Looks whether the imported files are still the same; if not, it is not ready any more. Then
  // sees to a fork for each rank of its plan. The loop calls `on_settled` then. Requires: it was
  // settled.
  void Renew(std::function<void()> on_settled);

  // Has forks made for the ranks of the next round, unless the host is short of memory. No effect
  // if it is not ready.
  void MakeSpares();

  // Calls no on_settled any more.
  void Hush();

  // How it came that it serves no more.
  enum class End {
    kNone,     // It does, or may yet.
    kChanged,  // What it has imported has changed on disk.
    kUseless,  // There was nothing that it could import.
    kLost,     // It was killed, stands still, or could not be started.
  };

  bool ready() const;
  End end() const;
  bool settled() const { return ready() || end() != End::kNone; }
  const ForkServerPlan& plan() const;

  // Makes a waiting fork the rank of `command`, whose descriptors may be closed afterwards.
  // Requires: CanBecome(plan(), command).
  //
  // Errors:
  //   Unavailable - it is not ready, or no fork waits.
  absl::StatusOr<Process> Fork(const Command& command);

  // How long its modules took to be imported; unset before it was ready.
  std::optional<Duration> import_time() const;

  std::vector<pid_t> pids() const;  // Its process and its forks that are no ranks: our children.
  pid_t pid() const;                // 0: it has ended and was reaped.

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with pending handlers.
};

}  // namespace hlaunch
