// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// How hlaunch's programs find each other. A build has all of them in one folder. An installation
// has `hlaunch` in bin/, hlaunchd in sbin/, and the other programs in libexec/hlaunch/.

namespace hlaunch {

// This process's program, for exec. This works even if the file was replaced after the start.
inline constexpr char kThisProgram[] = "/proc/self/exe";

// Gives this process the name of its program in `ps`, if it was execed as kThisProgram: the kernel
// then names it "exe".
void NameAfterProgram();

// Returns the path of this process's program, or an empty string if the kernel does not tell it.
std::string PathOfThisProgram();

// Returns the paths where the program `name` may be if this program is at `self`, in the order in
// which to try them. Pure.
std::vector<std::string> PlacesOfProgram(absl::string_view self, absl::string_view name);

}  // namespace hlaunch
