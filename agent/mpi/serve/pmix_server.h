// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/mpi/serve/mpi_ranks.h"
#include "agent/mpi/serve/pmix_words.h"
#include "agent/workers/process/held_program.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Runs a hlaunch-pmix process, which serves PMIx to the workers of one round on this node. Its
// reports and the exits of workers show how far the ranks are.
//
// Belongs to the loop thread. The destructor kills the process and removes the plan's directory.
class PmixServer {
 public:
  // Makes the directory and starts `program`. The loop calls `on_ready` once: OK if workers may be
  // started, else why they cannot.
  //
  // Errors of on_ready:
  //   FailedPrecondition - libpmix, the store or the other nodes; the message says which.
  PmixServer(asio::io_context& loop, const HeldProgram& program, PmixPlan plan, int world_size,
             std::function<void(absl::Status)> on_ready);
  ~PmixServer();

  // The variables by which a worker finds the server, NAME=value each. Requires: the server is
  // ready.
  const std::vector<std::string>& Environment(int local_rank) const;

  // In these calls `world` is 0 and the rank a local rank of this node, or `world` is the number of
  // a spawn and the rank is one of its ranks.
  struct Events {
    // The rank has failed by MPI's rules.
    std::function<void(int world, const MpiFailure&)> on_failure;
    // The rank asks to start processes. Starts them, or returns why it cannot.
    std::function<absl::Status(int world, int rank, const SpawnRequest&)> spawn;
  };

  // From now on the server calls these.
  void Watch(Events events);

  // A rank has exited with 0, and hlaunch had not stopped it. May call on_failure before it
  // returns.
  void Exited(int world, int rank);

  // A worker has failed. If the server has ended before that, reports the server's end before it
  // returns: ranks that lose their server end because of that.
  void WorkerFailed();

  // Reports no more failures and logs no more waiting: the workers are being stopped.
  void Hush();

  bool used() const;  // True if a worker has called MPI_Init.
  pid_t pid() const;  // The process's pid; 0: it does not run.

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with handlers pending in the loop.
};

}  // namespace hlaunch
