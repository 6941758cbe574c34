// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/mpi/decide_mpi.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {

absl::StatusOr<MpiDecision> DecideMpi(MpiWish wish, const MpiProgram& program,
                                      const MpiSurroundings& surroundings) {
  const bool links_pmi = program.flavour == MpiFlavour::kPmi;
  if (wish == MpiWish::kNone) return MpiDecision{MpiOffer::kNone, "none: --mpi none"};
  if (surroundings.lone_worker) {
    return MpiDecision{MpiOffer::kNone, "none: one worker is an MPI world by itself"};
  }
  if (surroundings.starts_others) {
    return MpiDecision{MpiOffer::kNone, "none: with --per-node workers start others themselves"};
  }
  if (program.flavour == MpiFlavour::kOpenMpi && wish == MpiWish::kAuto) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this is an Open MPI program (", program.seen,
        "), which PMIx starts, and hlaunch serves PMI-1 (MPICH, MVAPICH, Intel MPI) and not yet "
        "PMIx: each worker would be an MPI world of its own; start it with mpirun, or write --mpi "
        "none for separate worlds"));
  }
  if (surroundings.several_nodes && surroundings.store_in_worker) {
    if (links_pmi || wish == MpiWish::kPmi) {
      return absl::FailedPreconditionError(
          "MPI programs on several nodes meet at hlaunch's own master store: leave out "
          "--master-store worker, or use --mpi none");
    }
    return MpiDecision{MpiOffer::kNone, "none: --master-store worker leaves no place to meet at"};
  }
  if (links_pmi) {
    return MpiDecision{MpiOffer::kDescriptor,
                       absl::StrCat("PMI-1 by a descriptor: the program needs ", program.seen)};
  }
  if (wish == MpiWish::kPmi) return MpiDecision{MpiOffer::kPort, "PMI-1 by a port: --mpi pmi"};
  return MpiDecision{MpiOffer::kMaybe,
                     "PMI-1 by a port, in case that it starts an MPI program: none is seen in it"};
}

}  // namespace hlaunch
