// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// What the workers of a job inherit that is started here alone, NAME=value each: all of
// `environment` without `but`, or what --export lists, and then -x. Pure.
//
// Errors:
//   InvalidArgument - as above.
absl::StatusOr<std::vector<std::string>> InheritedVariables(const HostWish& wish,
                                                            const Environment& environment,
                                                            absl::string_view but);

}  // namespace hlaunch
