// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/text/environment.h"

namespace hlaunch {

// What serves PMIx on this host. A value.
struct PmixTools {
  std::string program;  // The path of hlaunch-pmix.
  std::string library;  // The path of libpmix.
  std::string missing;  // What is missing and how to get it; empty: nothing is.
};

// Looks for the program beside this one, then in it. Looks for the library beside the program's
// MPI, whose library is `mpi` (empty: unknown), then where the loader looks, then where Debian has
// it. An MPI that brings a libpmix of its own may use features that another libpmix lacks, such as
// the groups of Open MPI 5.
PmixTools FindPmix(const Environment& environment, const std::string& mpi);

}  // namespace hlaunch
