// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "absl/status/statusor.h"
#include "launcher/report/query/ask_options.h"

namespace hlaunch {

// Prints what a job has answered to `hlaunch why` or `hlaunch stacks`, or says why there is no
// answer. Returns the exit code.
int TellRanks(const AskOptions& options, absl::StatusOr<JobAnswer> answer);

}  // namespace hlaunch
