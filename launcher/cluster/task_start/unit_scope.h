// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cluster/task_start/part_limits.h"
#include "proto/base/clock.h"

// A part of a job runs in a control group of its own. So the service manager does not end the part
// together with the node daemon or with the unit that contains the daemon, and all processes of the
// part can be killed at once. Needs root.

namespace hlaunch {

// "hlaunch-7.scope".
std::string ScopeName(uint64_t job);

// Returns the command that asks systemd to put process `pid` into the scope of `job`, with
// `limits`. Pure.
std::vector<std::string> ScopeCommand(uint64_t job, pid_t pid, const PartLimits& limits);

// Moves this process into the scope of `job`, or into a group that this function makes if systemd
// does not provide a scope. Returns the scope's name or the group's path. Empty: there is no group,
// and the process stays where it was. Only systemd's scope has the limits; see HoldToLimits for the
// others. Blocks for about `patience` at most. Call in a child of the daemon.
std::string EnterScope(uint64_t job, const PartLimits& limits, Duration patience);

// Kills all processes in the groups of `job` that EnterScope can have made, at once. Returns false
// if there are no groups, or the kernel (before 5.14) cannot do it.
bool KillScope(uint64_t job);

// Removes the group of `job` that EnterScope made, and those of HoldToLimits. systemd removes its
// own scope. Returns false if a group is not empty yet, as killed processes may still be ending.
bool RemoveScope(uint64_t job);

}  // namespace hlaunch
