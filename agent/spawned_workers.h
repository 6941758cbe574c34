// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/mpi/mpi_ranks.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/worker/memory_kills.h"
#include "agent/worker/spawn_request.h"
#include "agent/worker/worker_env.h"
#include "agent/worker/worker_spec.h"
#include "proto/base/clock.h"
#include "rendezvous/round/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// Which rank has spawned a world. A value.
struct SpawnParent {
  int local_rank = 0;  // Of the job's own worker that is at the root of it all.
  std::string name;    // "rank 3"; of a process that was spawned itself: "rank 1 of spawn 2".
};

// The processes that ranks of this node have spawned in one round, by MPI_Comm_spawn. Each spawn is
// an MPI world of its own, whose processes all run on this node. They live and fail with the job:
// it succeeds once they all have exited with 0, and ends as one of them fails.
//
// Belongs to the loop thread.
class SpawnedWorkers {
 public:
  struct Events {
    std::function<void(WorkerFailure)> on_failure;  // One of them has failed; told as its parent's.
    std::function<void()> on_exit;                  // One of them has ended, and was reaped.
    // A rank that PMIx serves has exited with 0.
    std::function<void(int pmix_world, int rank)> on_success;
  };

  // What the job's own workers of the round have. A value.
  struct Base {
    Assignment assignment;
    WorkerSpec spec;
    NodeFacts facts;
    JobLogs logs;
    MemoryKills kills_before;
  };

  // `loop` and `relay` outlive it.
  SpawnedWorkers(asio::io_context& loop, Base base, OutputRelay& relay, Events events);
  ~SpawnedWorkers();

  // Starts what `parent` asks for, or nothing of it, and serves PMI-1 to it unless PMIx is.
  //
  // Errors: as WorkerGroup::Start; InvalidArgument - it is to run on another host.
  absl::Status Start(const SpawnParent& parent, const SpawnRequest& request);

  // The rank of what PMIx serves as a parent. Requires: it lives.
  SpawnParent ParentOf(int pmix_world, int rank) const;

  // The same has failed by MPI's rules.
  void FailByMpi(int pmix_world, const MpiFailure& failure);

  int alive() const;
  std::vector<pid_t> AlivePids() const;

  // Sends `signal` to the process group of each.
  void SignalGroups(int signal) const;

  // Tells of no failure any more: they are being stopped.
  void Hush();

  // Reaps those that exit until `deadline`, once they were killed.
  void AwaitExits(Instant deadline);

 private:
  struct World;
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
