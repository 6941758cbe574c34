// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The id that the agents of a cluster's job know it by: "hlaunch-7". Pure.
std::string ClusterJobId(uint64_t number);

// The number of the job with that id; none: it is no job of a cluster. Pure.
std::optional<uint64_t> ClusterJobNumber(absl::string_view id);

}  // namespace hlaunch
