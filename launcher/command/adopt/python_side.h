// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// The package that replaces a function of torch's launcher; see python/hlaunch_adopt.
inline constexpr char kAdoptPackage[] = "hlaunch_adopt";

// Read by the package. "1" wants it, "try" lets torch's agent run what hlaunch cannot, "0" is as if
// it were unset.
inline constexpr char kEnvTorchrun[] = "HLAUNCH_TORCHRUN";
// The path of hlaunch's program, for the package.
inline constexpr char kEnvProgram[] = "HLAUNCH_PROGRAM";

// Returns the folder of PYTHONPATH that holds the package, if hlaunch's program is at `self`: in a
// build, an installation, or a Python environment.
//
// Errors:
//   NotFound - the program was copied without its Python files; the message says what to install.
absl::StatusOr<std::string> FindPythonSide(const std::string& self);

// Returns the value of PYTHONPATH with `folder` behind `paths`, once. Pure.
std::string WithFolder(absl::string_view paths, absl::string_view folder);

}  // namespace hlaunch
