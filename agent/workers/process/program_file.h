// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlaunch {

// Returns the path to execute for `name`. A `name` with a '/' is a path; else it is looked up in
// the PATH of `env` (`NAME=value` each). As in execvp, a file that may not be executed does not end
// the search. `directory` is where the program will run; empty: here.
//
// Errors:
//   NotFound - there is no such program; the message names it.
//   PermissionDenied - the program exists but is not executable.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::vector<std::string>& env,
                                        const std::string& directory);

// Explains why execve of `path` in `directory` failed with `error`, an errno, by looking at the
// file: its interpreter may be missing, or the file may be for another machine.
//
// Returns, never OK:
//   NotFound - no such program, script interpreter or loader.
//   PermissionDenied - the program exists but cannot be executed.
//   InvalidArgument - arguments and environment are larger than the kernel accepts.
//   ResourceExhausted - out of memory, processes or descriptors.
absl::Status ExecError(int error, const std::string& path, const std::string& directory);

}  // namespace hlaunch
