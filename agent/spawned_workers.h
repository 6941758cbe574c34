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
#include "agent/mpi/serve/mpi_ranks.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/workers/worker/memory_kills.h"
#include "agent/workers/worker/spawn_request.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// The rank that spawned a world. A value.
struct SpawnParent {
  int local_rank = 0;  // The job's own worker at the root of the spawns.
  std::string name;    // "rank 3"; "rank 1 of spawn 2" for a parent that was spawned itself.
};

// The processes that ranks of this node have spawned in one round with MPI_Comm_spawn. Each spawn
// is an MPI world of its own, and all its processes run on this node. They live and fail with the
// job: it succeeds only after all of them have exited with 0, and ends if one of them fails.
//
// Belongs to the loop thread.
class SpawnedWorkers {
 public:
  struct Events {
    std::function<void(WorkerFailure)> on_failure;  // Reported as its parent's failure.
    std::function<void()> on_exit;                  // A process ended and was reaped.
    // A rank that is served by PMIx has exited with 0.
    std::function<void(int pmix_world, int rank)> on_success;
  };

  // The data of the job's own workers in this round. A value.
  struct Base {
    Assignment assignment;
    WorkerSpec spec;
    NodeFacts facts;
    JobLogs logs;
    MemoryKills kills_before;
  };

  // `loop` and `relay` must outlive this object.
  SpawnedWorkers(asio::io_context& loop, Base base, OutputRelay& relay, Events events);
  ~SpawnedWorkers();

  // Starts all processes that `parent` asks for, or none, and serves PMI-1 to them unless PMIx
  // serves them.
  //
  // Errors: as WorkerGroup::Start; InvalidArgument - a process is to run on another host.
  absl::Status Start(const SpawnParent& parent, const SpawnRequest& request);

  // A rank of a world that PMIx serves, as the parent of a spawn. Requires: the rank lives.
  SpawnParent ParentOf(int pmix_world, int rank) const;

  // A rank of a world that PMIx serves has failed by MPI's rules.
  void FailByMpi(int pmix_world, const MpiFailure& failure);

  int alive() const;
  std::vector<pid_t> AlivePids() const;

  // Sends `signal` to the process group of each process.
  void SignalGroups(int signal) const;

  // Reports no further failures, because the workers are being stopped.
  void Hush();

  // Reaps the processes that exit until `deadline`; call after they were killed.
  void AwaitExits(Instant deadline);

 private:
  struct World;
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace hlaunch
