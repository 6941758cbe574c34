// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// What --preload auto imports. Each was seen to leave one thread, no device and no descriptor, and
// ranks forked from it to do what ranks do that import it themselves.
inline constexpr const char* kKnownToFork[] = {"accelerate", "lightning", "numpy", "torch",
                                               "transformers"};

// Writes the Python modules of a fork server into `directory`, which it makes if there is none. As
// the first folder of PYTHONPATH it makes a Python with HLAUNCH_FORK_SERVER a fork server.
//
// Errors:
//   FailedPrecondition - the files cannot be written; the message says why.
absl::Status WritePythonSide(const std::string& directory);

// Python code that tells what a fork server would import. Its arguments are the modules with commas
// between them or "auto", "script", "module" or "code", and the script. It prints a line for each
// module, "hlaunch's answer: NAME WHY-NOT", and then "hlaunch's end"; or else why it cannot.
std::string PreviewScript();

}  // namespace hlaunch
