// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// hlaunch's programs find each other: those of a build are in one folder; an installation has
// `hlaunch` in bin/, hlaunchd in sbin/, and what `hlaunch` starts in libexec/hlaunch/.

namespace hlaunch {

// What this process runs, for exec: it works even if the file was replaced since.
inline constexpr char kThisProgram[] = "/proc/self/exe";

// The path of this process's program; empty if the kernel does not say.
std::string PathOfThisProgram();

// Where the program `name` may be, seen from the program at `self`, in the order in which to try.
// Pure.
std::vector<std::string> PlacesOfProgram(absl::string_view self, absl::string_view name);

}  // namespace hlaunch
