// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agent/workers/worker/worker_spec.h"
#include "rendezvous/round/values/round.h"

// The variables of other launchers, for scripts that read only those. Off by default: a framework
// that sees such names assumes that the launcher is present and calls it.
//
//   openmpi  frameworks conclude "under mpirun", import mpi4py, and get N worlds of one process
//            or hang. Half a set is worse: Horovod raises if only one of rank and size is set.
//   slurm    Lightning's and JAX's Slurm environments take over; an Open MPI in the worker warns
//            of a singleton, or asks a PMI server that does not exist.

namespace hlaunch {

// The names of `--compat`.
inline constexpr const char* kCompatSets[] = {"openmpi", "slurm"};

// Returns the variables of all sets in `spec.compat` for the worker with `local_rank`. `host` is
// this node's name: it stands for Slurm's node list if there is one node and no Slurm. Pure.
//
// Requires: CheckCompat.
std::vector<std::pair<absl::string_view, std::string>> CompatEnv(const Assignment& round,
                                                                 int local_rank,
                                                                 const WorkerSpec& spec,
                                                                 const std::string& host);

// Checks that the sets in `spec.compat` can be complete in a job of at most `max_nodes`. Pure.
//
// Errors:
//   InvalidArgument - there is no such set, or Slurm's list of several nodes is not known.
absl::Status CheckCompat(const WorkerSpec& spec, int max_nodes);

}  // namespace hlaunch
