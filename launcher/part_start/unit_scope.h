// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/part_start/part_limits.h"
#include "proto/base/clock.h"

// A part of a job runs in a control group of its own, so that the service manager ends it neither
// with the node daemon nor with what the daemon is a part of, and so that all of it can be killed
// at once. Needs root.

namespace hlaunch {

// "hlaunch-7.scope".
std::string ScopeName(uint64_t job);

// The command that has systemd put process `pid` into the scope of `job`, with `limits`. Pure.
std::vector<std::string> ScopeCommand(uint64_t job, pid_t pid, const PartLimits& limits);

// Moves this process into the scope of `job`, or where systemd does not run into a group that is
// made here, and returns the path of what it is in; empty: no group could be had, and the process
// stays where it was. Only systemd limits it then; see HoldToLimits. Blocks for `patience` at most.
// Call in a child of the daemon.
std::string EnterScope(uint64_t job, const PartLimits& limits, Duration patience);

// Kills all processes of the groups of `job` that EnterScope can have made, at once. False: there
// are none, or the kernel (before 5.14) cannot.
bool KillScope(uint64_t job);

// Removes the group of `job` that EnterScope made. systemd removes its own. False: it is not empty
// yet, as what was killed may still end.
bool RemoveScope(uint64_t job);

}  // namespace hlaunch
