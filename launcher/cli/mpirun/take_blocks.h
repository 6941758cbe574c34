// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/cli/hosts/host_list.h"
#include "launcher/cli/mpirun/mpirun_line.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Joins several programs of one line of mpirun: "./a : -n 1 ./b", or those in the file of --app.
// `line` has the options before the first program, `command` has the rest. If there are several
// programs, `line` becomes what is for all of them, with --also for the others, and `command`
// becomes the first one's. A single program is left unchanged. `read` returns the text of the file;
// the rest is pure.
//
// Errors:
//   InvalidArgument - names the program, or file and line, what is wrong with it, and how to fix
//       it.
absl::Status TakeBlocks(const ReadTextFn& read, const Environment& environment, MpirunLine& line,
                        std::vector<std::string>& command);

}  // namespace hlaunch
