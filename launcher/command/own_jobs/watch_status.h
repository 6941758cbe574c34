// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "rendezvous/round/values/round.h"

namespace hlaunch {

// What is watched. A value.
struct StatusToWatch {
  // Asks once, for so long. Errors: Unavailable passes.
  std::function<absl::StatusOr<JobList>(Duration patience)> fetch;
  bool lists = false;        // Shows all jobs, a line each; else the only one of the answer.
  std::string how_to_ask;    // As for ModelOf.
  bool ends_unseen = false;  // NotFound after an answer means that the job has ended.
};

// Shows the status until the job is over, nothing was heard for long, or the person ends it.
// Returns the exit code.
int WatchStatus(const StatusToWatch& watched);

}  // namespace hlaunch
