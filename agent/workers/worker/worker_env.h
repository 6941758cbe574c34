// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/workers/worker/worker_spec.h"
#include "proto/contract/ids.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// What this node adds to a worker's environment. A value; if a string is empty, its variable is not
// set.
struct NodeFacts {
  int usable_cores = 1;           // Physical cores, see UsableCores.
  std::string gloo_interface;     // GLOO_SOCKET_IFNAME if there are several nodes.
  std::string error_file;         // Where torch's @record writes this worker's exception.
  std::string endpoint;           // HLAUNCH_ENDPOINT
  std::string log_dir;            // HLAUNCH_LOG_DIR
  std::string timer_file = {};    // The watchdog's pipe, if there is one.
  std::string heartbeat = {};     // HLAUNCH_HEARTBEAT
  std::string boundary = {};      // HLAUNCH_BOUNDARY
  std::string tap = {};           // HLAUNCH_TAP, see Tap.
  std::string tap_packages = {};  // Appended to PYTHONPATH if there is a tap.
  std::string host = {};          // This node's name, for --compat slurm.
  uint16_t store_proxy_port = 0;  // The master store's proxy on loopback; 0 if there is none.
  std::string pmi_fd = {};        // PMI_FD, for a worker with a descriptor.
  std::string pmi_port = {};      // PMI_PORT, for a worker with a port.
  std::string pmi_id = {};        // PMI_ID, with PMI_PORT.
  // The variables by which this worker finds its PMIx server, NAME=value each.
  std::vector<std::string> pmix_env = {};
  std::string scratch = {};  // This agent's own directory, for files that are removed with it.
};

// Builds the environment of the worker with `local_rank`. First come the inherited variables in
// their order, without those that an outer launcher meant for hlaunch itself; then the worker's
// place in the round. The user's own values win over hlaunch's defaults, such as OMP_NUM_THREADS.
// Pure.
//
// Requires: CheckWorkerSpec.
std::vector<std::string> WorkerEnv(const Assignment& assignment, int local_rank,
                                   const WorkerSpec& spec, const NodeFacts& facts);

// Returns one line for the person about the defaults that hlaunch chose, on node rank 0 of the
// first round only; empty if there is nothing to say. Pure.
std::string ChosenDefaults(const Assignment& assignment, const WorkerSpec& spec,
                           const NodeFacts& facts);

// Returns the worker's command: `argv` with `${local_rank}` and `$local_rank` in the arguments
// replaced by its local rank, as torchrun does. Unlike torchrun, it leaves `$$` as it is. If `env`,
// the worker's environment, is given, the values of its variables replace `${rank}`,
// `${node_rank}`, `${nnodes}`, `${world_size}`, `${master_addr}` and `${master_port}`. Pure.
std::vector<std::string> WorkerArgv(const std::vector<std::string>& argv, int local_rank,
                                    const std::vector<std::string>* env = nullptr);

// How many ranks run each program of a job. The programs in `others` get the last ranks, and the
// first program gets the rest. If no rank is left, the first program is not in the result. Pure.
//
// Errors:
//   FailedPrecondition - there are fewer ranks than `others` need.
absl::StatusOr<std::vector<int>> RanksOfPrograms(const std::vector<OtherProgram>& others,
                                                 int world_size);

// The number of the program that `rank` runs, from 0 in the order of ranks: MPI_APPNUM. Pure.
// Requires: RanksOfPrograms.
int ProgramNumber(const std::vector<OtherProgram>& others, Rank rank, int world_size);

// The program that `rank` runs; null if it runs the first one. Pure. Requires: as above.
const OtherProgram* OtherProgramOf(const std::vector<OtherProgram>& others, Rank rank,
                                   int world_size);

// Checks that every worker of `spec` can get its environment in a job of at most `max_nodes`. Pure.
//
// Errors:
//   InvalidArgument - each worker is to see one device, but there are more workers than devices in
//     CUDA_VISIBLE_DEVICES; or as CheckCompat.
absl::Status CheckWorkerSpec(const WorkerSpec& spec, int max_nodes);

// Whether a worker gets the value that the user gives `name`. False for the variables that hlaunch
// sets for each worker, and those that it keeps from all. Pure.
bool IsGiven(absl::string_view name, const WorkerSpec& spec);

// True if a worker may inherit `name` when the user does not keep the whole environment. Pure.
bool IsInherited(absl::string_view name);

}  // namespace hlaunch
