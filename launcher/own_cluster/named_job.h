// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cluster_client/local_client.h"
#include "launcher/detached/job_record.h"

namespace hlaunch {

// A client of this host's hlaunchd, not connected yet.
LocalClient ClientOfDaemon();

// The jobs of this user that --detach started on a host with this home directory.
std::vector<DetachedJob> JobsKeptHere();

// The cluster's job that `word` names. Unset: none; a job that is kept here has that name; or there
// is no daemon, and so no cluster.
std::optional<uint64_t> JobOfCluster(const std::string& word);

}  // namespace hlaunch
