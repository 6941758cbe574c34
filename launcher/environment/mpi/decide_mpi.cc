// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/environment/mpi/decide_mpi.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// Refuses a start that would split an MPI program into several worlds. The message names --mpi none
// for users who want that.
absl::Status Refuse(absl::string_view reason) {
  return absl::FailedPreconditionError(absl::StrCat(reason, "; --mpi none starts separate worlds"));
}

absl::StatusOr<MpiDecision> DecidePmix(const MpiProgram& program, const PmixTools& tools) {
  const bool open_mpi = program.flavour == MpiFlavour::kOpenMpi;
  const std::string whose =
      open_mpi ? absl::StrCat("the program needs ", program.seen) : "--mpi pmix";
  if (tools.missing.empty() && open_mpi) {
    return MpiDecision{MpiOffer::kPmix, absl::StrCat("PMIx: ", whose)};
  }
  // MPICH's family asks by PMI-1, unless it was built otherwise.
  if (tools.missing.empty()) {
    return MpiDecision{
        MpiOffer::kAny,
        absl::StrCat("PMIx, and PMI-1 by a port: ", whose,
                     program.seen.empty() ? "" : ", and the program needs ", program.seen)};
  }
  return Refuse(absl::StrCat("PMIx, which starts Open MPI programs, cannot be served (", whose,
                             "): ", tools.missing));
}

// How much a flavour tells of what must be served.
int Weight(MpiFlavour flavour) {
  if (flavour == MpiFlavour::kNone) return 0;
  return flavour == MpiFlavour::kUnknown ? 1 : 2;
}

}  // namespace

absl::StatusOr<MpiProgram> MpiOfAll(const std::vector<MpiProgram>& programs) {
  MpiProgram all;
  for (const MpiProgram& program : programs) {
    const bool both_certain = Weight(all.flavour) == 2 && Weight(program.flavour) == 2;
    if (both_certain && all.flavour != program.flavour) {
      return Refuse(absl::StrCat("one program needs ", all.seen, " and another ", program.seen,
                                 ", which cannot be one MPI world: build both with one MPI"));
    }
    if (all.seen.empty() || Weight(program.flavour) > Weight(all.flavour)) all = program;
  }
  return all;
}

bool Differ(const std::vector<MpiProgram>& programs) {
  return std::any_of(programs.begin(), programs.end(), [&programs](const MpiProgram& program) {
    return program.flavour != programs.front().flavour;
  });
}

bool MayUsePmix(MpiWish wish, const MpiProgram& program) {
  return wish == MpiWish::kPmix || wish == MpiWish::kAny ||
         program.flavour == MpiFlavour::kOpenMpi || program.flavour == MpiFlavour::kUnknown;
}

absl::StatusOr<MpiDecision> DecideMpi(MpiWish wish, const MpiProgram& program,
                                      const MpiSurroundings& around) {
  const bool links_pmi = program.flavour == MpiFlavour::kPmi;
  const bool pmix =
      wish == MpiWish::kPmix || (wish != MpiWish::kPmi && program.flavour == MpiFlavour::kOpenMpi);
  if (wish == MpiWish::kNone) return MpiDecision{MpiOffer::kNone, "none: --mpi none"};
  // A lone worker needs a server only for MPI_Comm_spawn.
  const bool asked_for = wish == MpiWish::kPmi || wish == MpiWish::kPmix;
  const bool no_mpi = program.seen.empty() && !asked_for;
  if (around.lone_worker && (no_mpi || (pmix && !around.pmix.missing.empty()))) {
    return MpiDecision{MpiOffer::kNone, "none: one worker is an MPI world by itself"};
  }
  if (around.starts_others) {
    return MpiDecision{MpiOffer::kNone, "none: with --per-node workers start others themselves"};
  }
  if (around.several_nodes && around.store_in_worker) {
    const bool is_mpi = program.flavour != MpiFlavour::kNone || asked_for;
    if (is_mpi) {
      return Refuse(
          "MPI programs on several nodes meet at hlaunch's own master store: leave out "
          "--master-store worker");
    }
    return MpiDecision{MpiOffer::kNone, "none: --master-store worker leaves no place to meet at"};
  }
  if (pmix) return DecidePmix(program, around.pmix);
  if (links_pmi && around.differ) {  // The descriptor may not get through all programs.
    return MpiDecision{MpiOffer::kPort,
                       absl::StrCat("PMI-1 by a port: a program needs ", program.seen)};
  }
  if (links_pmi) {
    return MpiDecision{MpiOffer::kDescriptor,
                       absl::StrCat("PMI-1 by a descriptor: the program needs ", program.seen)};
  }
  if (wish == MpiWish::kPmi) return MpiDecision{MpiOffer::kPort, "PMI-1 by a port: --mpi pmi"};
  if (program.flavour == MpiFlavour::kUnknown || wish == MpiWish::kAny) {
    const std::string whose = program.seen.empty()
                                  ? "the program may start one of any MPI"
                                  : absl::StrCat("the program uses ", program.seen);
    // Without libpmix, hlaunch-pmix tells the other nodes so.
    if (around.pmix.missing.empty() || (around.several_nodes && !around.pmix.program.empty())) {
      return MpiDecision{MpiOffer::kAny, absl::StrCat("PMIx, and PMI-1 by a port: ", whose)};
    }
    return MpiDecision{MpiOffer::kPort,
                       absl::StrCat("PMI-1 by a port: ", whose, "; no PMIx, for Open MPI, since ",
                                    around.pmix.missing)};
  }
  return MpiDecision{MpiOffer::kMaybe,
                     absl::StrCat("PMI-1 by a port, in case that it starts an MPI program: ",
                                  program.seen.empty() ? "none is seen in it" : program.seen)};
}

}  // namespace hlaunch
