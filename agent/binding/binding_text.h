// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/binding/plan_binding.h"
#include "agent/binding/topology.h"

namespace hlaunch {

// Where each worker is bound, for people. The first line is the machine and the plan's reason,
// then one for each worker with a picture: brackets are sockets, bars part NUMA nodes, and a sign
// stands for a core, or on large machines for the same number of them: '#' for all of them, '+'
// for some, '.' for none, '-' for none that may be used. Pure.
std::vector<std::string> DescribeBinding(const Topology& topology, const std::vector<int>& allowed,
                                         const BindingPlan& plan);

// "[####|....][....|....]" of `cpus`. Pure.
std::string DrawCpus(const Topology& topology, const std::vector<int>& allowed,
                     const std::vector<int>& cpus);

}  // namespace hlaunch
