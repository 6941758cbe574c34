// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace hlaunch {

// `hlaunch attach`, `logs`, `stop` or `kill`, which `word` is, where it names a job of the cluster:
// all of it to its exit code. Unset: it does not, and nothing was done.
std::optional<int> RunForJobOfCluster(absl::string_view word, int argc, char** argv);

}  // namespace hlaunch
