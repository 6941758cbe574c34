// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/options/option_sources.h"
#include "launcher/cli/options/take_place.h"
#include "launcher/environment/scheduler/place.h"

namespace hlaunch {

// Returns the text of --explain-cluster as a table, or as one JSON object: each value, its source,
// its meaning, and whether it is used in addition to what stronger sources have `given`. Pure.
std::string ExplainPlace(const ClusterPlace& place, const std::vector<FoundValue>& given,
                         const absl::StatusOr<TakenPlace>& taken, bool json);

}  // namespace hlaunch
