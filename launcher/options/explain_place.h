// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cluster/place.h"
#include "launcher/options/option_sources.h"
#include "launcher/options/take_place.h"

namespace hlaunch {

// The text of --explain-cluster: each value, where it is from, what it means, and whether it is
// taken beside what stronger sources have `given`; a table, or one JSON object. Pure.
std::string ExplainPlace(const ClusterPlace& place, const std::vector<FoundValue>& given,
                         const absl::StatusOr<TakenPlace>& taken, bool json);

}  // namespace hlaunch
