// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What `hlaunch drain` or `undrain`, with these words of its command line, means of a host of the
// cluster; unset: it means a node of a job, or is wrong, and is read as that. Pure.
//
// Errors:
//   InvalidArgument - it means a host, and something of it is wrong.
absl::StatusOr<std::optional<DrainQuestion>> DrainOfHost(const std::vector<std::string>& words);

// `hlaunch drain` or `undrain` of a host of the cluster, to its exit code. Unset: it means a node
// of a job, or this host belongs to no cluster, and nothing was done.
std::optional<int> DrainHost(const std::vector<std::string>& words);

}  // namespace hlaunch
