// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/mpi/pmi/pmi_server.h"
#include "agent/mpi/serve/pmix_server.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/spawned_workers.h"
#include "agent/workers/worker/memory_kills.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/values/round.h"

namespace asio {
class io_context;
}

namespace hlaunch {

// What MPI programs need of this node in a round: the servers of PMI-1 and PMIx, and the processes
// that ranks have spawned. All of it is missing if the workers cannot be MPI programs.
//
// Belongs to the loop thread.
class RoundMpi {
 public:
  struct Events {
    // A worker has failed by MPI's rules; it may have exited with 0 or still run.
    std::function<void(const MpiFailure&)> on_failure;
    std::function<void(WorkerFailure)> on_spawned_failure;
    std::function<void()> on_spawned_exit;  // A spawned process ended and was reaped.
  };

  // `pmix` is ready to serve; null if PMIx is not used. `loop` and `relay` outlive this object.
  RoundMpi(asio::io_context& loop, OutputRelay& relay, std::unique_ptr<PmixServer> pmix,
           Events events);

  // Starts the servers if the workers of `spec` may be MPI programs.
  //
  // Errors: as PmiServer::Open.
  absl::Status Start(const Assignment& assignment, const WorkerSpec& spec, const NodeFacts& facts,
                     const JobLogs& logs, const MemoryKills& kills_before);

  // Adds to `facts` how a worker finds its server. The descriptor stays open until the worker runs.
  //
  // Errors: ResourceExhausted - out of descriptors.
  absl::StatusOr<UniqueFd> Link(int local_rank, NodeFacts& facts);

  // A worker has ended, and hlaunch had not stopped it. May call on_failure.
  void Ended(int local_rank, bool succeeded);

  // A worker has exited with 0. A wrapper may do so though its MPI program failed: the job goes on
  // as the wrapper says, but not in silence.
  void WarnIfUnserved(int local_rank);

  // The workers are being stopped: no failures are reported and no processes spawned any more.
  void Hush();

  // Ends the PMIx server. Its process is the last child, and no worker needs it any more.
  void EndPmix();

  // The round is over. Removes what MPI leaves behind; `cut_short`: not all workers ended with 0 by
  // themselves.
  void End(bool cut_short);

  pid_t pmix_pid() const { return pmix_ ? pmix_->pid() : 0; }  // 0: it does not run.

  // Spawned processes.
  int alive() const { return spawned_ ? spawned_->alive() : 0; }
  std::vector<pid_t> AlivePids() const;
  void SignalGroups(int signal) const;
  void AwaitExits(Instant deadline);

 private:
  absl::Status OpenPmi(const Assignment& assignment, const WorkerSpec& spec,
                       const NodeFacts& facts);
  void WatchPmix();
  absl::Status Spawn(int local_rank, const SpawnRequest& request);

  asio::io_context& loop_;
  OutputRelay& relay_;
  const Events events_;
  const int64_t began_ms_ = WallMillis();
  Rank first_rank_ = 0;
  bool hushed_ = false;
  bool warned_ = false;     // A rank's program found no PMIx server.
  bool pmix_used_ = false;  // A worker used the server, which is gone.
  std::unique_ptr<PmiServer> pmi_;
  std::unique_ptr<PmixServer> pmix_;
  std::optional<SpawnedWorkers> spawned_;
};

}  // namespace hlaunch
