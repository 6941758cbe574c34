// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"

namespace hlaunch {

struct Surroundings;

// Reads the command line, the file of --config, torchrun's PET_* variables and what `surroundings`
// say of this node's place (whose environment has the variables); the first one wins.
// Everything from the script on belongs to the script. Long options may be written with dashes or
// underscores; of a repeated option the last value counts. A program of the name torchrun is
// called so in what it says.
//
// Requires: argv[0], the program's name.
//
// Errors:
//   InvalidArgument - one line that names the option, variable or key, the value and the way out;
//     empty where another process of this job says it.
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Surroundings& surroundings);
absl::StatusOr<Options> ParseOptions(int argc, const char* const* argv,
                                     const Environment& environment = Environment());

// What can be read of a command line that ParseOptions refuses: all values that are right, without
// a script. It may lead to the job's other nodes, to tell them. Requires: as ParseOptions.
Options ParseWhatIsRight(int argc, const char* const* argv, const Surroundings& surroundings);

}  // namespace hlaunch
