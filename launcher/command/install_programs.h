// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/options/options.h"

// Puts hlaunch's programs where a user wants them beside the place where they were installed.

namespace hlaunch {

// Makes in `folder` a link to the program at `self` under each name of another launcher by which
// hlaunch can be called. Missing folders are made; a link that is right already is kept. Returns
// the paths of the links.
//
// Errors:
//   AlreadyExists - something else has the name there; nothing was changed under that name.
//   InvalidArgument - the folder or the link cannot be made; the message names it and says why.
absl::StatusOr<std::vector<std::string>> InstallLinks(const std::string& self,
                                                      const std::string& folder);

// Copies the program at `self` and those that it needs for jobs of several nodes into `folder`, so
// that they run from there alone: a container's volume, for one. A copy that is there is replaced
// in one step, also while it runs. Returns the paths of the copies.
//
// Errors:
//   InvalidArgument - a program is missing or cannot be copied; the message names it and says why.
absl::StatusOr<std::vector<std::string>> InstallCopies(const std::string& self,
                                                       const std::string& folder);

// Carries out --install-links or --install-copies, of which one is set, and prints what is there
// now. Returns the exit code.
int InstallPrograms(const InsteadOfJob& wanted);

}  // namespace hlaunch
