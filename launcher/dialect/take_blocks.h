// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/dialect/mpirun_line.h"
#include "launcher/hosts/host_list.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// Several programs of one line of mpirun: "./a : -n 1 ./b", or those in the file of --app. `line`
// is what stands before the first, `command` what follows. Of several, `line` becomes what is for
// all, with --also for the others, and `command` the first one's; one is left as it is. `read`
// gives the text of the file. Pure but for that.
//
// Errors:
//   InvalidArgument - which program, or file and line, what is wrong with it, and the way out.
absl::Status TakeBlocks(const ReadTextFn& read, const Environment& environment, MpirunLine& line,
                        std::vector<std::string>& command);

}  // namespace hlaunch
