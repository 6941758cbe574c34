// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "rendezvous/round/values/round.h"

// Finds in the last lines of a program's stderr why it ended. Pure: works on text only.

namespace hlaunch {

// Returns the line of `tail` that says why a program ended that raised no exception. The line is
// from the program loader, the shell, Python before the script's first line, the parser of a
// command line, or Rust. For a Python that PYTHONHOME misled, it says where Python looked. Without
// control characters; empty if there is no such line.
std::string ComplaintIn(absl::string_view tail);

// Returns the worker's exception, see ExceptionOf, else its complaint; empty if it printed neither.
std::string OwnWords(const WorkerFailure& failure);

}  // namespace hlaunch
