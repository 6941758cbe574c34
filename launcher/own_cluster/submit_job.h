// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "launcher/cluster/place.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// A job that goes to the cluster of this host's hlaunchd: hands it over and, unless it is to go on
// without this terminal, follows it to its end. The first signal that asks for an end stops the
// job, the second kills it; a terminal that is gone (SIGHUP) leaves it alone. Returns the exit
// code: the job's, where it was followed. Unset: the job starts here, and nothing was done. Call
// while there is one thread, before limits are raised.
std::optional<int> RunOnCluster(const Options& options, const Environment& environment,
                                const Surroundings& surroundings);

}  // namespace hlaunch
