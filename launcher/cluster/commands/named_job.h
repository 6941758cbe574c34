// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster/client/local_client.h"
#include "launcher/remote/detached/job_record.h"

namespace hlaunch {

// Returns a client of this host's hlaunchd that is not connected yet.
LocalClient ClientOfDaemon();

// Returns this user's jobs that --detach started on any host with this home directory.
std::vector<DetachedJob> JobsKeptHere();

// Returns the number of the cluster's job that `word` names. Unset: `word` is no job number, a job
// of this user that is kept or runs here has that name, or this host has no daemon and so no
// cluster.
std::optional<uint64_t> JobOfCluster(const std::string& word);

}  // namespace hlaunch
