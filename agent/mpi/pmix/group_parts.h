// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// The answer to ranks that make a PMIx group.
struct GroupAnswer {
  uint32_t number = 0;  // PMIx's "context id". No other group of the job has it. Never 0.
  std::string data;     // The data of all nodes that have one of the ranks, one after the other.
};

// One node's part of a group, for the other nodes: the group's number, or 0 if another node gives
// it, and the data of this node's ranks. Pure.
std::string GroupPart(uint32_t number, absl::string_view data);

// Joins the parts of all nodes, which stand one after the other. Pure.
//
// Errors:
//   InvalidArgument - the parts are damaged, or none of them has a number.
absl::StatusOr<GroupAnswer> JoinGroupParts(absl::string_view parts);

// The number for the group that is number `count` of `node` among `num_nodes`; 0 if the numbers are
// used up. They go down from the largest, as in PRRTE, because Open MPI uses small ones itself.
// Pure.
uint32_t GroupNumber(uint64_t count, int node, int num_nodes);

}  // namespace hlaunch
