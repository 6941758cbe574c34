// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/worker/worker_spec.h"
#include "proto/contract/ids.h"
#include "rendezvous/round/round.h"

namespace hlaunch {

// What a worker's environment takes from this node. A value; an empty string means that the
// name is not set.
struct NodeFacts {
  int usable_cores = 1;           // Physical ones, see UsableCores.
  std::string gloo_interface;     // GLOO_SOCKET_IFNAME if there are several nodes.
  std::string error_file;         // Of this worker: where torch's @record writes its exception.
  std::string endpoint;           // HLAUNCH_ENDPOINT
  std::string log_dir;            // HLAUNCH_LOG_DIR
  std::string timer_file = {};    // Of the watchdog's pipe, where there is one.
  std::string heartbeat = {};     // HLAUNCH_HEARTBEAT
  std::string boundary = {};      // HLAUNCH_BOUNDARY
  std::string tap = {};           // HLAUNCH_TAP, see Tap.
  std::string tap_packages = {};  // The end of PYTHONPATH, as long as there is a tap.
  std::string host = {};          // This node's name, for --compat slurm.
  uint16_t store_proxy_port = 0;  // Where workers find the master store on loopback; 0: not there.
  std::string pmi_fd = {};        // PMI_FD of this worker,
  std::string pmi_port = {};      // or PMI_PORT
  std::string pmi_id = {};        // and PMI_ID.
  // By which variables this worker finds its PMIx server, NAME=value each.
  std::vector<std::string> pmix_env = {};
  std::string scratch = {};  // A directory of this agent alone, for what lasts no longer than it.
};

// Decides what the worker with `local_rank` sees: the inherited environment without what an
// outer launcher meant for hlaunch itself, in its order; then its place in the round. The
// user's own OMP_NUM_THREADS and other defaults win. Pure.
//
// Requires: CheckWorkerSpec.
std::vector<std::string> WorkerEnv(const Assignment& assignment, int local_rank,
                                   const WorkerSpec& spec, const NodeFacts& facts);

// One line for the person about what hlaunch chose in the user's place, on node rank 0 of the
// first round only; empty if there is nothing to say. Pure.
std::string ChosenDefaults(const Assignment& assignment, const WorkerSpec& spec,
                           const NodeFacts& facts);

// What a worker runs: `argv`, where `${local_rank}` and `$local_rank` in the arguments are its
// local rank, as torchrun has it; but `$$` stays what it is. Pure.
std::vector<std::string> WorkerArgv(const std::vector<std::string>& argv, int local_rank);

// How many ranks run each program of a job: those of `others` are the last, and the first program
// has the rest, if there are any; else it is not among them. Pure.
//
// Errors:
//   FailedPrecondition - there are fewer ranks than `others` need.
absl::StatusOr<std::vector<int>> RanksOfPrograms(const std::vector<OtherProgram>& others,
                                                 int world_size);

// The number of the program that `rank` runs, from 0 on in the order of ranks: MPI_APPNUM. Pure.
// Requires: RanksOfPrograms.
int ProgramNumber(const std::vector<OtherProgram>& others, Rank rank, int world_size);

// What `rank` runs instead of the first program; null: that one. Pure. Requires: as above.
const OtherProgram* OtherProgramOf(const std::vector<OtherProgram>& others, Rank rank,
                                   int world_size);

// Whether every worker of `spec` can have its environment in a job of at most `max_nodes`. Pure.
//
// Errors:
//   InvalidArgument - more workers than CUDA_VISIBLE_DEVICES has devices, where each is to see
//     one; see CheckCompat.
absl::Status CheckWorkerSpec(const WorkerSpec& spec, int max_nodes);

// Whether a worker may inherit `name`, unless the user keeps the environment. Pure.
bool IsInherited(absl::string_view name);

}  // namespace hlaunch
