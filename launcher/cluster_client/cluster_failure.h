// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// Says why a question was not answered, and returns what to exit with.
int FailToAskCluster(const absl::Status& status);

// Prints a text of this room, and returns what to exit with.
int PrintOfCluster(const std::string& text);

}  // namespace hlaunch
