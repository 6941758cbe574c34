// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cluster/node_tasks.h"
#include "launcher/cluster/place.h"
#include "launcher/options/option_sources.h"

namespace hlaunch {

// What of a place is used. A value.
struct TakenPlace {
  std::vector<FoundValue> values;
  std::vector<std::string> warnings;  // One line each.
  std::optional<NodeTasks> tasks;     // This node's, where its workers run in them.
  std::string nnodes;                 // In the place of the typed --nnodes; empty: that stays.
};

// Options of a command that is run on each host by itself, and that none has which starts them all.
const std::vector<absl::string_view>& OptionsOfEachHost();

// `place`, decided for one of both where it is an allocation's script or shell: the job's nodes are
// started from here, or this is a node by itself, as `given` has it or a `program` that is
// torchrun, whose word is one node. Other places stay as they are. `word`: of --cluster. Pure.
ClusterPlace ChooseStart(ClusterPlace place, const std::vector<FoundValue>& given,
                         absl::string_view program, const std::string& word);

// Decides which values of `place` are taken beside `given`, which is from stronger sources. Who
// says there that it is one node, or which nodes there are and where they meet, has said all of
// that: only what concerns this node alone is taken, its workers and their grace. Who says less is
// completed. Where it comes to one node, nothing of where nodes meet is taken. Nodes that were not
// started are not waited for. Of several tasks on this node each is a job of its own with
// --standalone alone. Pure.
//
// Errors:
//   InvalidArgument - the place's refusal; several nodes, and nobody says where they meet; or there
//     are others, and nobody says how many.
absl::StatusOr<TakenPlace> TakePlace(const ClusterPlace& place,
                                     const std::vector<FoundValue>& given);

}  // namespace hlaunch
