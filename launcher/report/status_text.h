// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/ask/ask_words.h"
#include "rendezvous/round/round.h"

// `hlaunch status`: its command line, and what it prints. Pure.

namespace hlaunch {

struct StatusOptions : AskWords {            // Without a job: all jobs.
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  bool detached = false;  // No rendezvous was named: of the user's detached jobs.
  bool watch = false;     // Goes on showing it.
  std::string html_file;  // Where a snapshot is to be written; empty: nowhere.
};

// Requires: the command line begins with `status`.
//
// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
absl::StatusOr<StatusOptions> ParseStatusOptions(int argc, const char* const* argv);

// One job with its nodes, for people: a few lines and a table.
std::string JobText(const JobStatus& job);
// A line for each of all jobs, of which there are `total`; above it which of several services
// leads, unless `leader` is empty.
std::string JobListText(const std::vector<JobStatus>& jobs, int total,
                        const std::string& leader = "");

// The same for programs: one object, and one with the array "jobs".
std::string JobJson(const JobStatus& job);
std::string JobListJson(const std::vector<JobStatus>& jobs, int total,
                        const std::string& leader = "");

}  // namespace hlaunch
