// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Returns probes that ask this host: sched_getaffinity, getrandom, the file system.
HostProbes RealHostProbes();

// Decides everything that follows from the options. Asks the host only through `probes`.
//
// Errors:
//   InvalidArgument - as MakeMeeting; see CheckWorkerSpec, AssignDevices.
//   ResourceExhausted - see AssignDevices.
//   NotFound, PermissionDenied, FailedPrecondition - the program cannot be run, see
//     MakeWorkerArgv.
absl::StatusOr<JobSpec> MakeJobSpec(const Options& options, const Environment& environment,
                                    const HostProbes& probes);

// Makes the part of the job spec that says how this node meets the others: all but workers and
// logs.
//
// Errors:
//   InvalidArgument - as FindCredentials.
absl::StatusOr<JobSpec> MakeMeeting(const Options& options, const Environment& environment,
                                    const HostProbes& probes);

}  // namespace hlaunch
