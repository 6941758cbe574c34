// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The job id by which the agents know a cluster's job, as in "hlaunch-7". Pure.
std::string ClusterJobId(uint64_t number);

// The number of the cluster's job with that id; unset if it is none. Pure.
std::optional<uint64_t> ClusterJobNumber(absl::string_view id);

}  // namespace hlaunch
