// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// The ranks of each node, in the format that MPICH reads: "(vector,(0,2,4))" says that two nodes,
// from node 0 on, have four ranks each. `nprocs` are the workers of each node in the order of node
// ranks. Empty if the text is longer than a client can take: the client then compares host names.
// Pure.
std::string ProcessMapping(const std::vector<int>& nprocs);

}  // namespace hlaunch
