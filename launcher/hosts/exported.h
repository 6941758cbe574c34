// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/hosts/host_list.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// The variables of this terminal that all hosts get, NAME=value each: those of --export, or what
// says where programs are and how libraries compute, and then those of -x. What looks like a secret
// or is of this host alone goes only if -x names it; hlaunch's own never go. Pure.
//
// Errors:
//   InvalidArgument - -x names what is not set, or what cannot be a name.
absl::StatusOr<std::vector<std::string>> ExportedVariables(const HostWish& wish,
                                                           const Environment& environment);

}  // namespace hlaunch
