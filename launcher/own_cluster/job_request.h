// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// What of this process the parts of its job take on. A value.
struct TerminalState {
  std::string directory;
  int umask = 022;
  std::vector<std::string> limits;  // As StartMessage has them.
};

// The state of this process.
//
// Errors:
//   InvalidArgument - its working directory is gone.
absl::StatusOr<TerminalState> StateOfThisProcess();

// What the cluster is asked to start for `options`: how many nodes with what, and the words and
// variables of each part. Words that placing decides, and those of this command alone, stay here.
// Pure.
//
// Errors:
//   InvalidArgument - an option that a job of the cluster cannot have, and what to do instead.
absl::StatusOr<JobRequest> RequestOf(const Options& options, const Environment& environment,
                                     const TerminalState& state);

}  // namespace hlaunch
