// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Makes the argv of every worker. Looks up and checks the files on this host before anything
// starts:
//   a module        python -u -m NAME args
//   --run-path      python -u FILE args, whatever the file is
//   --no-python     the program as typed, looked up in PATH as a shell does
//   a script        python -u FILE args, if it is *.py or does not run by itself
//   a program       FILE args, if it is executable and is an ELF file or begins with #!; a name
//                   without a slash is looked up in PATH if there is no such file here
// FindPython says which Python. argv[0] always contains a slash. With --wdir, files are looked up
// in that directory, and argv[0] is absolute.
//
// Errors:
//   NotFound - there is no such script, program or interpreter; the message says where it was
//     looked for.
//   PermissionDenied - the file exists but cannot be read or run.
//   FailedPrecondition - the script or program is a directory or a pipe.
absl::StatusOr<std::vector<std::string>> MakeWorkerArgv(const ScriptRequest& request,
                                                        const Environment& environment);

// Returns the absolute path of `directory`, in which workers will run.
//
// Errors:
//   NotFound - there is no such directory.
absl::StatusOr<std::string> FindWorkersDirectory(const std::string& directory);

}  // namespace hlaunch
