// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// Logs why the cluster did not answer a question. Returns the exit code for that error.
int FailToAskCluster(const absl::Status& status);

// Prints `text` to stdout. Returns the exit code.
int PrintOfCluster(const std::string& text);

}  // namespace hlaunch
