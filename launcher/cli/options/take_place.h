// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/option_sources.h"
#include "launcher/environment/scheduler/node_tasks.h"
#include "launcher/environment/scheduler/place.h"

namespace hlaunch {

// The part of a place that is used. A value.
struct TakenPlace {
  std::vector<FoundValue> values;
  std::vector<std::string> warnings;  // One line each.
  std::optional<NodeTasks> tasks;     // This node's tasks, if its workers run in them.
  std::string nnodes;                 // Replaces the typed --nnodes. Empty: the typed value stays.
  int started_nodes = 0;              // As in JobPolicy.
};

// The options for a command that is run separately on each host. A command that starts all hosts
// itself cannot have them.
const std::vector<absl::string_view>& OptionsOfEachHost();

// Decides what to do if `place` is the script or shell of an allocation. Either this command starts
// the job's nodes, or it runs only the node on this host. It does the latter if `given` says that
// there is one node or has an option of OptionsOfEachHost, and if `program` is torchrun without
// --nnodes, which means one node; a `word` of --cluster other than "auto" is then refused. Returns
// other places unchanged. Pure.
ClusterPlace ChooseStart(ClusterPlace place, const std::vector<FoundValue>& given,
                         absl::string_view program, const std::string& word);

// Decides which values of `place` are used in addition to `given`, which comes from stronger
// sources. If `given` says that there is one node, or both how many nodes there are and where they
// meet, then only the values for this node alone are used: its workers, their grace, devices and
// binding. If `given` says less, `place` completes it. With one node, nothing about the meeting is
// used. The job does not wait for nodes that were not started. If this node has several tasks, each
// task is a job of its own only with --standalone. Pure.
//
// Errors:
//   InvalidArgument - the place's refusal; or no source says where several nodes meet; or there are
//     other nodes, and no source says how many.
absl::StatusOr<TakenPlace> TakePlace(const ClusterPlace& place,
                                     const std::vector<FoundValue>& given);

}  // namespace hlaunch
