// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// Logs the error and returns `code`.
int FailToAsk(const absl::Status& status, int code);

// Prints a text that may hold bytes of strangers, made safe for a terminal. Returns the exit code.
int PrintAnswer(const std::string& text);

}  // namespace hlaunch
