// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Runs `hlaunch attach`, `logs`, `stop` or `kill`, which `word` says, if it names a job of the
// cluster. Returns the exit code. Unset: it names no such job, and nothing was done.
std::optional<int> RunForJobOfCluster(absl::string_view word, int argc, char** argv);

}  // namespace hlaunch
