// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/workers/fork_server/plan_fork_servers.h"
#include "agent/workers/process/process.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// A rank that the fork server makes. It waits until Await lets it go. Movable, like
// StartingProcess.
class ForkedRank {
 public:
  ForkedRank(ForkedRank&&) noexcept;
  ~ForkedRank();  // Unless Await was called, the rank ends before it has begun.

  // Waits until the rank is a child of this process, and lets it go. Call once, in the order in
  // which ranks were begun.
  //
  // Errors:
  //   Unavailable - there is no such rank; the message says why. None will come.
  absl::StatusOr<Process> Await();

 private:
  friend class ForkServer;
  struct State;
  explicit ForkedRank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A Python that has imported modules and becomes ranks by fork: children of this process, in
// sessions of their own, with the environment, descriptors and CPUs of their commands. It is a
// child of this process, and ends with it.
//
// Belongs to the loop thread. The destructor kills it and reaps it; its ranks live on.
class ForkServer {
 public:
  // Called from the loop.
  struct Events {
    std::function<void()> on_settled;  // Once: it is ready or will not be.
    std::function<void()> on_reaped;   // Its process has ended and was reaped.
  };

  // Starts it with the modules that WritePythonSide wrote into `directory`. It may take minutes
  // until it is ready.
  ForkServer(asio::io_context& loop, ForkServerPlan plan, const std::string& directory,
             Events events);
  ~ForkServer();

  // Looks whether the imported files are still the same; if not, it is not ready any more. The loop
  // calls `on_settled` then. Requires: it was settled.
  void Renew(std::function<void()> on_settled);

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

  // Begins to make a rank; `command`'s descriptors may be closed afterwards. Several may be on
  // their way.
  // Requires: CanBecome(plan(), command).
  //
  // Errors:
  //   Unavailable - it is not ready, or does not answer and was ended.
  absl::StatusOr<ForkedRank> Fork(const Command& command);

  pid_t pid() const;  // 0: it has ended and was reaped.

 private:
  friend class ForkedRank;
  struct State;
  const std::shared_ptr<State> state_;  // Shared with ranks on their way and pending handlers.
};

}  // namespace hlaunch
