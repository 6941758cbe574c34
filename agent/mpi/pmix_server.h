// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "agent/mpi/mpi_ranks.h"
#include "agent/mpi/pmix_words.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Has PMIx served to the workers of one round on this node, by a process of hlaunch-pmix. What that
// says and the exits of workers make up how far the ranks have come.
//
// Belongs to the loop thread. Destruction kills the process and removes the plan's directory.
class PmixServer {
 public:
  // Makes the directory and starts `program`. `on_ready` is called from the loop, once: workers may
  // be started, or why they cannot be.
  //
  // Errors of on_ready:
  //   FailedPrecondition - libpmix, the store or the other nodes; the message says which.
  PmixServer(asio::io_context& loop, const std::string& program, PmixPlan plan, int world_size,
             std::function<void(absl::Status)> on_ready);
  ~PmixServer();

  // By which variables a worker finds it, NAME=value each. Requires: it is ready.
  const std::vector<std::string>& Environment(int local_rank) const;

  // In these a rank is one of this node's by its number here, or one of a spawn's.
  struct Events {
    // It has failed by MPI's rules.
    std::function<void(int world, const MpiFailure&)> on_failure;
    // It asks for what is to be started. Starts it, and returns why that cannot be.
    std::function<absl::Status(int world, int rank, const SpawnRequest&)> spawn;
  };

  // From now on these are called.
  void Watch(Events events);

  // A rank has exited with 0, and nobody had stopped it. Tells failures from within this.
  void Exited(int world, int rank);

  // Some worker has failed. Where that is since the server has ended, tells so from within: ranks
  // that lose it end by that.
  void WorkerFailed();

  // Tells of no failure any more, and waits for nobody: the workers are being stopped.
  void Hush();

  bool used() const;  // Whether a worker has come to MPI_Init.
  pid_t pid() const;  // Of the process; 0: it does not live.

 private:
  struct State;
  const std::shared_ptr<State> state_;  // Shared with what is under way in the loop.
};

}  // namespace hlaunch
