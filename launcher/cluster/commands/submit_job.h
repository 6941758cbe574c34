// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "launcher/cli/options/options.h"
#include "launcher/environment/scheduler/place.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Hands a job to the cluster of this host's hlaunchd, if it goes there. Then follows the job to its
// end, unless it shall go on without this terminal. The first signal that asks for an end stops the
// job, the second kills it. A lost terminal (SIGHUP) leaves the job alone. Returns the exit code,
// which is the job's if it was followed. Unset: the job starts here, and nothing was done. Call it
// while there is one thread, before limits are raised.
std::optional<int> RunOnCluster(const Options& options, const Environment& environment,
                                const Surroundings& surroundings);

}  // namespace hlaunch
