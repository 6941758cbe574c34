// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// What a command line makes Python run. A value.
struct PythonCall {
  enum class Kind { kScript, kModule, kCode };
  Kind kind = Kind::kScript;
  std::string what;     // The script's path, the module's name, or the code.
  std::string why_not;  // Set if no fork of a Python can stand for this command.
};

// "script", "module" or "code". Pure.
std::string KindOf(const PythonCall& call);

// Reads `argv`, the command line of a rank. Pure.
PythonCall ReadPythonCall(const std::vector<std::string>& argv);

}  // namespace hlaunch
