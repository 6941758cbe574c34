// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/cluster/client/local_client.h"
#include "launcher/remote/detached/detached_words.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// Prints what the nodes of `job` have said until now, ordered by time, as `options` ask for it.
// `since` is a result of ReadSince. Returns the number of nodes whose log cannot be read; a warning
// on stderr names each.
//
// Errors: those of AskLog, if no node's log could be read.
absl::StatusOr<size_t> ShowKeptLogs(LocalClient& client, const JobView& job,
                                    const DetachedOptions& options, const std::string& since);

}  // namespace hlaunch
