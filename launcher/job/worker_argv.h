// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// The argv of every worker, looked up and checked on this host before anything starts:
//   a module        python -u -m NAME args
//   --run-path      python -u FILE args, whatever the file is
//   --no-python     the program as typed, looked up in PATH as a shell does
//   a script        python -u FILE args, where it is *.py or nothing that runs by itself
//   a program       FILE args, where it is executable and an ELF file or begins with #!; a name
//                   without a slash that is no file here is looked up in PATH
// Python is $PYTHON_EXEC, else that of $VIRTUAL_ENV or $CONDA_PREFIX, else python3 or python of
// PATH. argv[0] always holds a slash. With --wdir files are looked up there, and argv[0] is
// absolute.
//
// Errors:
//   NotFound - no such script, program or interpreter; the message says where it was looked for.
//   PermissionDenied - it is there and cannot be read or run.
//   FailedPrecondition - it is a directory.
absl::StatusOr<std::vector<std::string>> MakeWorkerArgv(const ScriptRequest& request,
                                                        const Environment& environment);

// The absolute path of `directory`, where workers are to run.
//
// Errors:
//   NotFound - there is no such directory.
absl::StatusOr<std::string> FindWorkersDirectory(const std::string& directory);

}  // namespace hlaunch
