// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

// The hosts that a line of mpirun names, beside a hostfile and within a scheduler's job.

namespace hlaunch {

// Whether --hosts=allocation finds the hosts of a scheduler's job, and this process is not one of
// several tasks of a step. Pure.
bool IsInAllocation(const Environment& environment);

// Takes -H beside a hostfile: the ranks run on the hosts of -H, in its order and with its numbers,
// and each of them must be in the file. A host without a number has one place, as in Open MPI.
//
// Errors:
//   InvalidArgument - names the host, or what `read` says of the file.
absl::Status TakeHostsOfFile(const ReadTextFn& read, MpirunLine& line);

// Takes the hosts that the line names within a scheduler's job: they are hosts of that job, as in
// Open MPI, and the scheduler's own starter reaches them. A starter that the line names is taken
// instead, and then any host. A scheduler's list of hosts is read besides, and the rest is pure.
//
// Errors:
//   InvalidArgument - names a host that is not in the job, or has fewer slots there.
absl::Status TakeHostsOfJob(const Environment& environment, const ReadTextFn& read,
                            MpirunLine& line);

}  // namespace hlaunch
