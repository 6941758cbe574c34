// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cluster/place.h"
#include "launcher/options/option_sources.h"

namespace hlaunch {

// What of a place is used. A value.
struct TakenPlace {
  std::vector<FoundValue> values;
  std::vector<std::string> warnings;  // One line each.
  std::string nnodes;                 // In the place of the typed --nnodes; empty: that stays.
};

// Decides which values of `place` are taken beside `given`, which is from stronger sources. Who
// says there that it is one node, or which nodes there are and where they meet, has said all of
// that: only what concerns this node alone is taken, its workers and their grace. Who says less is
// completed. Where it comes to one node, nothing of where nodes meet is taken. Nodes that were not
// started are not waited for. Pure.
//
// Errors:
//   InvalidArgument - the place's refusal; several nodes, and nobody says where they meet; or there
//     are others, and nobody says how many.
absl::StatusOr<TakenPlace> TakePlace(const ClusterPlace& place,
                                     const std::vector<FoundValue>& given);

}  // namespace hlaunch
