// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Slurm's two notations. Both are pure, and their only error is InvalidArgument, with a message
// that says what is wrong where and repeats no more than a word of `text`.

namespace hlaunch {

// "n[01-03,7],login" as the hosts that it stands for, in Slurm's own order, which is the order of
// the nodes: "a[1-2]b[1-2]" counts the last bracket fastest, and of three or more the last, then
// the first, then the second and so on. Repeated hosts stay. At most `max_hosts` of them.
//
// What Slurm takes and nobody means is refused: brackets without their other half, blanks in
// them, a range without an end.
absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view text, size_t max_hosts);

// "3,1(x2)" as {3, 1, 1}: how many of something each node has. At most `max_nodes` of them.
absl::StatusOr<std::vector<int>> ExpandCounts(absl::string_view text, size_t max_nodes);

}  // namespace hlaunch
