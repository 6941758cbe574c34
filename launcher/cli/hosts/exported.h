// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// The variables of this terminal that all hosts get, each NAME=value. These are the variables of
// --export, or by default those that tell where programs are and how libraries compute; and then
// those of -x. A variable that looks like a secret or concerns only this host is sent only if -x
// names it. Of hlaunch's own only HLAUNCH_PYTHON is sent, if it is set. Pure.
//
// Errors:
//   InvalidArgument - -x names a variable that is not set, or something that cannot be a name.
absl::StatusOr<std::vector<std::string>> ExportedVariables(const HostWish& wish,
                                                           const Environment& environment);

// The variables that the workers inherit, each NAME=value, if the job is started only on this host:
// all of `environment` without `but`, or those that --export lists, and then those of -x. Pure.
//
// Errors:
//   InvalidArgument - as above.
absl::StatusOr<std::vector<std::string>> InheritedVariables(const HostWish& wish,
                                                            const Environment& environment,
                                                            absl::string_view but);

}  // namespace hlaunch
