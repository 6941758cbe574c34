// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "launcher/cluster_client/local_client.h"
#include "launcher/detached/detached_words.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// Prints what the nodes of `job` have said until now, in the order of its times, as `options` ask
// for it; `since` as ReadSince gives it. A node whose log cannot be read is told on stderr.
//
// Errors: those of AskLog, where no node's log can be read.
absl::Status ShowKeptLogs(LocalClient& client, const JobView& job, const DetachedOptions& options,
                          const std::string& since);

}  // namespace hlaunch
