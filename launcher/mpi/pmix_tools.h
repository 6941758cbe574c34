// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/words/environment.h"

namespace hlaunch {

// What PMIx is served with on this host. A value.
struct PmixTools {
  std::string program;  // The path of hlaunch-pmix.
  std::string library;  // The path of libpmix.
  std::string missing;  // What is not there, and how one gets it; empty: both are there.
};

// Looks for the program beside this one, and for the library beside the program's MPI, whose
// library is `mpi` (empty: not known), where the loader does, and where Debian has it. An MPI that
// brings a libpmix of its own may say more than another one carries: groups, of Open MPI 5.
PmixTools FindPmix(const Environment& environment, const std::string& mpi);

}  // namespace hlaunch
