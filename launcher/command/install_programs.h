// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"

// Puts links to hlaunch, or copies of its programs, into a folder that the user chooses.

namespace hlaunch {

// Makes links to the program at `self` in `folder`, one for each other launcher under whose name
// hlaunch can be called. Makes missing folders. Keeps a link that is correct already. Returns the
// paths of the links.
//
// Errors:
//   AlreadyExists - something else in the folder has the name; it was not changed.
//   InvalidArgument - the folder or the link cannot be made; the message names it and says why.
absl::StatusOr<std::vector<std::string>> InstallLinks(const std::string& self,
                                                      const std::string& folder);

// Copies the programs for jobs of several nodes, the one at `self` among them, into `folder`, for
// example a container's volume. The copies run without the original programs. An old copy is
// replaced in one step, even while it runs. Returns the paths of the copies.
//
// Errors:
//   InvalidArgument - a program is missing or cannot be copied; the message names it and says why.
absl::StatusOr<std::vector<std::string>> InstallCopies(const std::string& self,
                                                       const std::string& folder);

// Carries out --install-links or --install-copies, exactly one of which is set, and prints the
// paths of the links or copies. Returns the exit code.
int InstallPrograms(const InsteadOfJob& wanted);

}  // namespace hlaunch
