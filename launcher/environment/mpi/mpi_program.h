// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// The MPI that a program is linked with, as far as its file and its libraries show.
enum class MpiFlavour {
  kNone,     // None is seen: no MPI program, or a wrapper, an interpreter, or a static program.
  kPmi,      // An MPI that PMI-1 starts: MPICH, MVAPICH, Intel MPI.
  kOpenMpi,  // Open MPI, which PMIx starts.
  kUnknown,  // The program uses some MPI; its kind is known only at run time.
};

// What is known of a program's MPI. A value.
struct MpiProgram {
  MpiFlavour flavour = MpiFlavour::kNone;
  // What shows the MPI: "libmpi.so.40", or "libmpi.so.40 of libx.so.1" if a library needs it. Set
  // with kNone for an interpreter or wrapper with an MPI of MPICH's family. Empty: none is seen.
  std::string seen;
  std::string library = "";  // The path of its MPI, or of one that it may load; empty: unknown.
};

// The MPI that has a library of this name: "libmpi.so.12" is of MPICH and its family. Pure.
MpiFlavour FlavourOfLibrary(absl::string_view name);

// Looks at the program that `argv` starts and at the libraries that it loads, directly or
// indirectly. For a script it looks at the program in the #! line, and for Python also at the
// mpi4py that its code names. If no MPI is seen, it looks at the programs among its arguments (env,
// numactl, time) and in a shell's text, and what is found there is kUnknown, or kNone with `seen`.
// Reads the beginnings of some files, at most a few hundred.
MpiProgram LookForMpi(const std::vector<std::string>& argv, const Environment& environment);

}  // namespace hlaunch
