// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agent/output/log_directory.h"
#include "agent/output/output_relay.h"
#include "agent/workers/process/process.h"
#include "agent/workers/worker/worker_env.h"
#include "agent/workers/worker/worker_spec.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

class ForkServers;
class LastWords;
class RoundMpi;
class StdinCopies;
class WorkerWatches;

// A worker that has not reached its program yet. A movable value.
struct StartingWorker {
  std::optional<Process> forked;
  std::optional<StartingProcess> process;  // Unless it is forked.
  WorkerOutput output;                     // Must stay open until the program runs.
  int local_rank = 0;
  std::string error_file;
  std::string log_file;
  UniqueFd mpi;  // Must stay open as well.
  UniqueFd in;   // Must stay open as well.
  bool is_stand_in = false;

  // Blocks until its program runs. Errors: as Process::Spawn.
  absl::StatusOr<Process> Await();
};

// What a worker of a round is connected to. A value; what it refers to outlives it.
struct WorkerLinks {
  OutputRelay& relay;
  WorkerWatches& watches;
  RoundMpi& mpi;
  LastWords& last_words;
  StdinCopies* stdin_copies = nullptr;  // Set if all workers read stdin.
  ForkServers* fork_servers = nullptr;  // Set if there may be some.
};

// Starts a worker and does not wait for its program. `facts` are those of the node.
//
// Errors: as Process::Start; ResourceExhausted - out of descriptors.
absl::StatusOr<StartingWorker> BeginWorker(const WorkerLinks& links, const WorkerSpec& spec,
                                           const Assignment& assignment, NodeFacts facts,
                                           RoundLogs& round_logs, int local_rank);

}  // namespace hlaunch
