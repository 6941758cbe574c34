// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/report/query/ask_words.h"
#include "rendezvous/round/values/round.h"

// The command line and the output of `hlaunch status`. Pure.

namespace hlaunch {

struct StatusOptions : AskWords {            // No job: all jobs are meant.
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  bool detached = false;  // No rendezvous was named: show the user's detached jobs.
  bool watch = false;     // Show the status until the job ends.
  std::string html_file;  // Write a snapshot to this file. Empty: write none.
};

// Requires: the command line begins with `status`.
//
// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<StatusOptions> ParseStatusOptions(int argc, const char* const* argv);

// Returns text for people about one job with its nodes: a few lines and a table.
std::string JobText(const JobStatus& job);
// Returns a table with a line for each job in `jobs`; there are `total` jobs. Above it stands which
// of several services leads, unless `leader` is empty.
std::string JobListText(const std::vector<JobStatus>& jobs, int total,
                        const std::string& leader = "");

// The same for programs: one JSON object, and one JSON object with the array "jobs".
std::string JobJson(const JobStatus& job);
std::string JobListJson(const std::vector<JobStatus>& jobs, int total,
                        const std::string& leader = "");

}  // namespace hlaunch
