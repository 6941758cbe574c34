// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Slurm's two notations. Both functions are pure. Their only error is InvalidArgument, whose
// message says what is wrong at which word, and repeats no more of `text` than that word.

namespace hlaunch {

// Returns the hosts for which "n[01-03,7],login" stands, at most `max_hosts`. They come in Slurm's
// own order, which is the order of the nodes: in "a[1-2]b[1-2]" the last bracket counts fastest;
// with three or more brackets the last one, then the first, then the second and so on. Repeated
// hosts stay.
//
// Refuses what Slurm accepts but no user means: brackets without their other half, blanks in
// brackets, a range without an end.
absl::StatusOr<std::vector<std::string>> ExpandHostlist(absl::string_view text, size_t max_hosts);

// Returns {3, 1, 1} for "3,1(x2)": how many of something each node has. At most `max_nodes`
// numbers.
absl::StatusOr<std::vector<int>> ExpandCounts(absl::string_view text, size_t max_nodes);

}  // namespace hlaunch
