// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "agent/worker_spec.h"
#include "rendezvous/round.h"

namespace hlaunch {

// What a worker's environment takes from this node. A value; an empty string means that the
// name is not set. Nobody fills in `endpoint` and `log_dir` yet.
struct NodeFacts {
  int usable_cores = 1;        // Physical ones, see UsableCores.
  std::string gloo_interface;  // GLOO_SOCKET_IFNAME if there are several nodes.
  std::string error_file;      // Of this worker: where torch's @record writes its exception.
  std::string endpoint;        // HLAUNCH_ENDPOINT
  std::string log_dir;         // HLAUNCH_LOG_DIR
};

// Decides what the worker with `local_rank` sees: the inherited environment without what an
// outer launcher meant for hlaunch itself, in its order; then its place in the round. The
// user's own OMP_NUM_THREADS and other defaults win. Pure.
std::vector<std::string> WorkerEnv(const Assignment& assignment, int local_rank,
                                   const WorkerSpec& spec, const NodeFacts& facts);

// One line for the person about what hlaunch chose in the user's place, on node rank 0 of the
// first round only; empty if there is nothing to say. Pure.
std::string ChosenDefaults(const Assignment& assignment, const WorkerSpec& spec,
                           const NodeFacts& facts);

// Whether a worker may inherit `name`. Pure.
bool IsInherited(absl::string_view name);

}  // namespace hlaunch
