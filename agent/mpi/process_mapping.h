// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// Which ranks are on which node, as MPICH reads it: "(vector,(0,2,4))" says that from node 0 on two
// nodes have four ranks each. `nprocs` are the workers of each node in the order of their ranks.
// Empty where it is longer than a client can take: it then finds out by host names. Pure.
std::string ProcessMapping(const std::vector<int>& nprocs);

}  // namespace hlaunch
