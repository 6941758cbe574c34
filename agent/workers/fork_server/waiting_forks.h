// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/workers/process/process.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Forks of a fork server that wait to be told which rank they are: children of this process, in
// sessions of their own. Each ends by itself once its socket is closed.
//
// Belongs to the loop thread. The destructor kills them, and leaves the reaping to the agent's end.
class WaitingForks {
 public:
  // The loop calls `on_reaped` when one has ended before it was told, and was reaped; not after the
  // destruction.
  WaitingForks(asio::io_context& loop, std::function<void()> on_reaped);
  ~WaitingForks();

  // Takes the fork `pid`, which reads `socket`'s other end. If that fails, it is about to end.
  //
  // Errors: as Process::Adopt.
  absl::Status Add(pid_t pid, UniqueFd socket);

  size_t count() const;
  std::vector<pid_t> pids() const;

  // Makes one of them the rank of `command`, whose descriptors may be closed afterwards; the rank's
  // Python is at `python`. The rank prints `printed` first, to stdout and to stderr. Never waits.
  //
  // Errors:
  //   Unavailable - none lives, or it does not take what it is told.
  absl::StatusOr<Process> Become(const Command& command, const std::string& python,
                                 const std::string (&printed)[2]);

  void Kill();

  // Reaps them until `deadline`. Requires: they were killed.
  void AwaitEnds(Instant deadline);

 private:
  struct Fork;
  void OnEnd(pid_t pid);

  asio::io_context& loop_;
  const std::function<void()> on_reaped_;
  std::list<Fork> waiting_;
  const std::shared_ptr<bool> life_ = std::make_shared<bool>(true);  // Expires with this object.
};

}  // namespace hlaunch
