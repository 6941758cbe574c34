// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Tells a person why a process does not go on, in words that follow "it". `state` is as in proc(5),
// `kernel` is the kernel function in which the process waits, `debugger` is its tracer; the last
// two may be empty. Pure.
std::string StandstillWords(char state, absl::string_view kernel, absl::string_view debugger);

// Describes process `pid` in this way, from what /proc shows of its first thread now.
std::string DescribeStandstill(pid_t pid);

}  // namespace hlaunch
