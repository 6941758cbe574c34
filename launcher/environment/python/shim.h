// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/text/environment.h"

// Shims of pyenv, asdf, mise and rye: programs named python3 that run the Python which a file of
// the directory names, such as .python-version, .tool-versions or mise.toml.

namespace hlaunch {

// Whether `python` is such a shim: it lies in a folder `shims`, or leads to the program of mise or
// rye. Other wrappers are none: one that runs Python in a container has a path that means nothing
// here.
bool IsShim(const std::string& python);

// What a shim runs in some directory. A value.
struct ShimChoice {
  std::string python;                  // Its absolute path.
  std::vector<std::string> variables;  // What the shim sets or changes for it, NAME=value each.
};

// Runs `shim` in `directory` with `environment`, and returns what it runs there. Blocks for at most
// ten seconds.
//
// Errors:
//   FailedPrecondition - the shim runs no Python there; the message says what to do.
absl::StatusOr<ShimChoice> AskShim(const std::string& shim, const std::string& directory,
                                   const Environment& environment);

}  // namespace hlaunch
