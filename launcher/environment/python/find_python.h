// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/text/environment.h"

// Which Python runs scripts.

namespace hlaunch {

// Returns the Python that runs scripts on this host. It is the first of:
//   $PYTHON_EXEC;
//   $HLAUNCH_PYTHON, see NoteOwnPython;
//   python3 in PATH, as in this shell;
//   python in PATH;
//   that of $VIRTUAL_ENV or $CONDA_PREFIX, since there is no other.
// If PATH leads to the environment that VIRTUAL_ENV or CONDA_PREFIX names, its Python must run: a
// Python behind it in PATH would not know the environment's packages.
//
// Errors:
//   NotFound - there is no such interpreter, or it does not run; the message says how to name one.
absl::StatusOr<std::string> FindPython(const Environment& environment);

// Returns python3 of the environment (venv or conda) in whose bin/ hlaunch lies; empty if it lies
// in no environment. Links are followed one by one: a link in an environment to a program elsewhere
// counts as well as a link elsewhere to a program in an environment. The Python may turn out not to
// run. `argv0` is the name by which hlaunch was called, and `program` is the path of its file.
std::string PythonBeside(const std::string& argv0, const std::string& program,
                         const Environment& environment);

// Sets HLAUNCH_PYTHON to PythonBeside for this process and for those that it becomes or starts on
// this host. Does nothing if it is set already: `python -m hlaunch` sets it to the Python that runs
// it. Call before other threads start.
void NoteOwnPython(const char* argv0);

}  // namespace hlaunch
