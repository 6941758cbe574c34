// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/cli/options/options.h"
#include "launcher/text/environment.h"

namespace hlaunch {

struct Surroundings;

// Reads the command line, the file of --config, the variables in the environment of `surroundings`
// (such as torchrun's PET_*), and what `surroundings` say about this node's place. A source beats
// the sources after it. Everything from the script on belongs to the script. Long options may be
// written with dashes or underscores. If an option is repeated, its last value counts. A program
// that was called as torchrun uses this name in its messages.
//
// Requires: argv[0], the program's name.
//
// Errors:
//   InvalidArgument - one line that names the option, variable or key, the value and the way out.
//     The message is empty if another process of this job prints it.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Surroundings& surroundings);
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Environment& environment = Environment());

// Returns all valid values of a command line that ParseOptions refuses, without the script. They
// may be enough to reach the job's other nodes and to tell them. Requires: as ParseOptions.
Options ParseWhatIsRight(int argc, const char* const* argv, const Surroundings& surroundings);

}  // namespace hlaunch
