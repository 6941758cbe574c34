// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// Writes the Python modules of a fork server into `directory`, which it makes if there is none. As
// the first folder of PYTHONPATH it makes a Python with HLAUNCH_FORK_SERVER a fork server.
//
// Errors:
//   FailedPrecondition - the files cannot be written; the message says why.
absl::Status WritePythonSide(const std::string& directory);

}  // namespace hlaunch
