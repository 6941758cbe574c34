// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/workers/worker/worker_spec.h"
#include "launcher/environment/mpi/mpi_program.h"
#include "launcher/environment/mpi/pmix_tools.h"

namespace hlaunch {

// The value of --mpi.
enum class MpiWish {
  kAuto,  // As the program needs.
  kAny,   // The same, and a program in which no MPI is seen may use any.
  kPmi,
  kPmix,
  kNone
};

// What the decision depends on besides the program. A value.
struct MpiSurroundings {
  bool lone_worker = false;    // The job cannot have a second worker.
  bool starts_others = false;  // --per-node: the worker starts others itself.
  bool several_nodes = false;
  bool store_in_worker = false;  // --master-store worker.
  PmixTools pmix = {};
  bool differ = false;  // Ranks run several programs, which do not all show the same MPI.
};

// The result of DecideMpi. A value.
struct MpiDecision {
  MpiOffer offer = MpiOffer::kNone;
  std::string reason;  // One line, always set.
};

// MpiOfAll returns what the programs of one job need together, since they share one MPI_COMM_WORLD;
// an empty list needs no MPI. Differ returns whether the programs show different things: for
// example, one is a script, in which no MPI is seen. Pure.
//
// Errors:
//   FailedPrecondition - they need MPIs that cannot be one world.
absl::StatusOr<MpiProgram> MpiOfAll(const std::vector<MpiProgram>& programs);
bool Differ(const std::vector<MpiProgram>& programs);

// Returns whether the decision on `program` can depend on the tools for PMIx. Pure.
bool MayUsePmix(MpiWish wish, const MpiProgram& program);

// Decides how MPI programs among the workers find the server that starts them. Pure.
//
// Errors:
//   FailedPrecondition - the program uses MPI, but each worker would be an MPI world of its own,
//       and the user has not asked for that; the message says what to write instead.
absl::StatusOr<MpiDecision> DecideMpi(MpiWish wish, const MpiProgram& program,
                                      const MpiSurroundings& surroundings);

}  // namespace hlaunch
