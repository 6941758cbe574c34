// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "rendezvous/round/hang/attribute_hang.h"

namespace hlaunch {

// Of one host's ranks, at most so many stacks are read.
inline constexpr int kMostSampled = 16;

// Finds which ranks hold up MPI programs. No recorder tells what MPI's ranks have called, and one
// that waits usually computes as if it worked. So it first suspects: some ranks compute and move no
// bytes, and the others do nothing; or all compute, as most healthy programs do. Then samples of
// the stacks must show who is in a call of MPI all the time. A rank in none holds up the others. If
// it computes, or others wait for messages as the workers of a master do, it gets the time of ranks
// that work. If all wait, or a culprit computes, the same calls must be seen to last: by names
// alone, a program that calls the same again and again looks alike. Finds nothing if a rank works
// in any other way, or is no MPI program. Requires: `ranks` is the whole job. Pure.
HangVerdict AttributeMpiHang(const std::vector<RankSnapshot>& ranks);

// True if all ranks of a communicator take part in such a call: "MPI_Barrier", "mpi_bcast_". Pure.
bool IsMpiCollective(absl::string_view call);

}  // namespace hlaunch
