// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"
#include "launcher/text/environment.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What the parts of a job take over from this process. A value.
struct TerminalState {
  std::string directory;
  int umask = 022;
  std::vector<std::string> limits;  // In the format of StartMessage.
};

// Returns the state of this process.
//
// Errors:
//   InvalidArgument - its working directory is gone.
absl::StatusOr<TerminalState> StateOfThisProcess();

// Makes the request that asks the cluster to start a job for `options`: how many nodes with what
// devices, and the words and variables of each part. Options that decide the placing, and options
// of this command alone, are not among the words. Pure.
//
// Errors:
//   InvalidArgument - a job of the cluster cannot have an option; the message says what to do
//       instead.
absl::StatusOr<JobRequest> RequestOf(const Options& options, const Environment& environment,
                                     const TerminalState& state);

}  // namespace hlaunch
