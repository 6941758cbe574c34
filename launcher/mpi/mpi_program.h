// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// What MPI a program is linked with, as far as its file and those of its libraries show.
enum class MpiFlavour {
  kNone,  // None is seen: it is no MPI program, or a wrapper, an interpreter, or linked statically.
  kPmi,   // One that PMI-1 starts: MPICH, MVAPICH, Intel MPI.
  kOpenMpi,  // Open MPI, which PMIx starts.
  kUnknown,  // It is one of MPI, of whichever kind is there when it runs.
};

// A value.
struct MpiProgram {
  MpiFlavour flavour = MpiFlavour::kNone;
  // What it is seen by: "libmpi.so.40"; of a library "libmpi.so.40 of libx.so.1". Without a
  // flavour: it is of MPICH's kin, in an interpreter. Empty: no MPI is seen.
  std::string seen;
  std::string library = "";  // Where its MPI is, or the one that it may load; empty: not known.
};

// What a library of this name is of: "libmpi.so.12" is of MPICH and its kin. Pure.
MpiFlavour FlavourOfLibrary(absl::string_view name);

// Looks at what `argv` starts: a program and the libraries that it is loaded with, those of theirs
// included; a script by the program in its #! line, and one of Python also by the mpi4py that it
// names. Reads the beginnings of some files, at most a few hundred.
MpiProgram LookForMpi(const std::vector<std::string>& argv, const Environment& environment);

}  // namespace hlaunch
