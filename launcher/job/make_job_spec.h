// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "launcher/job/job_spec.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// Of this host: sched_getaffinity, getrandom, the file system.
HostProbes RealHostProbes();

// Decides what follows from the options; all contact with the host is in `probes`.
//
// Errors:
//   InvalidArgument - as MakeMeeting; see CheckWorkerSpec, AssignDevices.
//   ResourceExhausted - see AssignDevices.
//   NotFound, PermissionDenied, FailedPrecondition - the program cannot be run, see
//     MakeWorkerArgv.
absl::StatusOr<JobSpec> MakeJobSpec(const Options& options, const Environment& environment,
                                    const HostProbes& probes);

// The part of it that says how this node meets the others: all but workers and logs.
//
// Errors:
//   InvalidArgument - the token cannot be had, or is none.
absl::StatusOr<JobSpec> MakeMeeting(const Options& options, const Environment& environment,
                                    const HostProbes& probes);

}  // namespace hlaunch
