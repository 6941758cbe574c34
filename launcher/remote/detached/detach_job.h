// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "launcher/cli/options/options.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Checks that the job of `options` can go on without its terminal. `place` is where this process
// runs. Pure.
//
// Errors:
//   InvalidArgument - it cannot; the message says why.
absl::Status CheckDetach(const Options& options, const ClusterPlace& place);

// --detach: starts a process of its own that runs the job of this command line, waits until all of
// its nodes are here, and prints how to follow and end it. Returns the exit code; if the job ended
// before that, the job's. Call while there is one thread.
int DetachJob(int argc, char** argv, const Options& options, const Environment& environment);

}  // namespace hlaunch
