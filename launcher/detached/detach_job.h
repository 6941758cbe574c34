// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/status.h"
#include "launcher/cluster/place.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// Whether the job of `options` can go on without its terminal, where this process is at `place`.
// Pure.
//
// Errors:
//   InvalidArgument - it cannot, and why.
absl::Status CheckDetach(const Options& options, const ClusterPlace& place);

// --detach: has a process of its own run the job of this command line, waits until all of its nodes
// are here, and says how to follow and end it. Returns the exit code: that of the job if it ended
// before. Call while there is one thread.
int DetachJob(int argc, char** argv, const Options& options, const Environment& environment);

}  // namespace hlaunch
