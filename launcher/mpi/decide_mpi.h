// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/worker/worker_spec.h"
#include "launcher/mpi/mpi_program.h"
#include "launcher/mpi/pmix_tools.h"

namespace hlaunch {

// What --mpi says.
enum class MpiWish { kAuto, kPmi, kPmix, kNone };

// What the decision depends on beside the program. A value.
struct MpiSurroundings {
  bool lone_worker = false;    // The job can have no second one.
  bool starts_others = false;  // --per-node: the worker starts others itself.
  bool several_nodes = false;
  bool store_in_worker = false;  // --master-store worker.
  PmixTools pmix = {};
  bool differ = false;  // Ranks run several programs, and not all show the same MPI.
};

// A value.
struct MpiDecision {
  MpiOffer offer = MpiOffer::kNone;
  std::string reason;  // One line, always set.
};

// What the programs of one job need together, which have one MPI_COMM_WORLD; and whether they show
// different things: one is a script, say, in which no MPI is seen. None: no MPI. Pure.
//
// Errors:
//   FailedPrecondition - they need MPIs that cannot be one world.
absl::StatusOr<MpiProgram> MpiOfAll(const std::vector<MpiProgram>& programs);
bool Differ(const std::vector<MpiProgram>& programs);

// Decides how MPI programs among the workers find who starts them. Pure.
//
// Errors:
//   FailedPrecondition - each worker would be an MPI world of its own though the program is one of
//     MPI, and that was not asked for; the message says what to write instead.
absl::StatusOr<MpiDecision> DecideMpi(MpiWish wish, const MpiProgram& program,
                                      const MpiSurroundings& surroundings);

}  // namespace hlaunch
