// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

// The slots that a scheduler gave its job, for a line of mpirun that names no hosts, and those that
// a line counts on this host.

namespace hlaunch {

// Keeps the ranks of such a line within the slots of the job around it, as Open MPI does, and
// refuses an order of ranks that is not host by host. With --oversubscribe, ranks beyond the slots
// are spread evenly over the hosts. The words of Hydra alone take any number on one host, as Hydra
// does. A scheduler's list of hosts is read, and the rest is pure.
//
// Requires: what the line leaves open is taken from variables.
//
// Errors:
//   InvalidArgument - there are fewer slots, the job's hosts cannot be read, ranks by node would
//       need a second round, or the job is heterogeneous; with the way out.
absl::Status KeepJobSlots(const Environment& environment, MpirunLine& line);

// Refuses more ranks than `slots`, which the line itself counts on this host alone. Pure.
//
// Errors:
//   InvalidArgument - there are fewer slots; --oversubscribe or the words of Hydra allow it.
absl::Status KeepSlotsHere(int slots, const MpirunLine& line);

}  // namespace hlaunch
