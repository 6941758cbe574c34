// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// What Open MPI 4 and 5 write where they find no PMIx server and hlaunch keeps them from being
// worlds of one rank; the last one is that of 5 without its files of texts.
inline constexpr absl::string_view kUnservedMpi[] = {"(described vs non-described) mismatch",
                                                     "access to a local PMIx server", "    no-pmi"};

inline constexpr absl::string_view kAdviceOnUnservedMpi =
    "it uses Open MPI, which hlaunch had not seen in the program: add --mpi pmix, or --mpi none, "
    "which makes each rank an MPI world of its own";

// Whether a worker's last lines have such words. Pure.
inline bool SaysUnservedMpi(absl::string_view lines) {
  for (const absl::string_view words : kUnservedMpi) {
    if (absl::StrContains(lines, words)) return true;
  }
  return false;
}

}  // namespace hlaunch
