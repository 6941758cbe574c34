// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// What ranks that make a group of PMIx get.
struct GroupAnswer {
  uint32_t number = 0;  // No other group of the job has it: PMIx's "context id". Never 0.
  std::string data;     // What all nodes that have one of the ranks have said, one after the other.
};

// What one node says of a group, for the others: the number that it gives, 0 if another node gives
// it, and what its ranks have said. Pure.
std::string GroupPart(uint32_t number, absl::string_view data);

// What the parts of all nodes, one after the other, come to. Pure.
//
// Errors:
//   InvalidArgument - they are damaged, or none of them gives a number.
absl::StatusOr<GroupAnswer> JoinGroupParts(absl::string_view parts);

// The number of the group that `node` of `num_nodes` is the `count`th to give; 0: they have run
// out. They go down from the largest, as those of PRRTE do: Open MPI has small ones of its own.
// Pure.
uint32_t GroupNumber(uint64_t count, int node, int num_nodes);

}  // namespace hlaunch
