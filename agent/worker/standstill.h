// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Why a process does not go on, for the person, in words that follow "it": `state` as in proc(5),
// `kernel` the function of the kernel that it waits in, `debugger` what traces it; either may be
// empty. Pure.
std::string StandstillWords(char state, absl::string_view kernel, absl::string_view debugger);

// The same of process `pid` as /proc shows its first thread now.
std::string DescribeStandstill(pid_t pid);

}  // namespace hlaunch
