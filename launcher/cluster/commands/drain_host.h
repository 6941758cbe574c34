// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// Reads `words`, the command line of `hlaunch drain` or `undrain`, as the drain of a host of the
// cluster. Unset: the words mean a node of a job or are wrong, and the caller reads them as for a
// node of a job. Pure.
//
// Errors:
//   InvalidArgument - the words mean a host, and one of them is wrong.
absl::StatusOr<std::optional<DrainQuestion>> DrainOfHost(const std::vector<std::string>& words);

// Runs `hlaunch drain` or `undrain` for a host of the cluster. Returns the exit code. Unset: the
// words mean a node of a job, or this host belongs to no cluster, and nothing was done.
std::optional<int> DrainHost(const std::vector<std::string>& words);

}  // namespace hlaunch
