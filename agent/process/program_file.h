// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlaunch {

// The path to execute for `name`, which is a path if it has a '/', else sought in the PATH of `env`
// (`NAME=value` each). As execvp: a file that may not be executed does not end the search.
// `directory` is where the program will run; empty: here.
//
// Errors:
//   NotFound - there is no such program; the message names it.
//   PermissionDenied - there is one and it is not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::vector<std::string>& env,
                                        const std::string& directory);

// Says why execve of `path` in `directory` failed with `error`, an errno, by a look at the file:
// its interpreter may be missing, or the file may be none for this machine.
//
// Returns, never OK:
//   NotFound - no such program, script interpreter or loader.
//   PermissionDenied - it is there and cannot be executed.
//   InvalidArgument - arguments and environment are more than the kernel takes.
//   ResourceExhausted - out of memory, processes or descriptors.
absl::Status ExecError(int error, const std::string& path, const std::string& directory);

}  // namespace hlaunch
