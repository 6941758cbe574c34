// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "agent/machine/binding/plan_binding.h"
#include "agent/machine/binding/topology.h"

namespace hlaunch {

// Describes for people where each worker is bound. The first line tells the plan's reason and the
// machine. Then comes one line for each worker with a picture: brackets enclose sockets, bars
// separate NUMA nodes, and a sign stands for a core, or on large machines for a fixed number of
// cores. '#' means that the worker may use all of their allowed CPUs, '+' some, '.' none; '-' means
// that no CPU of theirs is allowed. Pure.
std::vector<std::string> DescribeBinding(const Topology& topology, const std::vector<int>& allowed,
                                         const BindingPlan& plan);

// Draws `cpus` like "[####|....][....|....]". Pure.
std::string DrawCpus(const Topology& topology, const std::vector<int>& allowed,
                     const std::vector<int>& cpus);

}  // namespace hlaunch
