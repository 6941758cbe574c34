// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns in a few words where the kernel has put the core of process `pid`. `pattern` is the line
// in /proc/sys/kernel/core_pattern, and `uses_pid` that in core_uses_pid. Pure.
std::string WhereTheCoreIs(absl::string_view pattern, bool uses_pid, pid_t pid);

// The same for a process of this host that has just dumped its core.
std::string WhereTheCoreIs(pid_t pid);

}  // namespace hlaunch
