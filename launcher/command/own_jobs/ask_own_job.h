// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "launcher/command/own_jobs/own_jobs.h"
#include "launcher/command/own_jobs/secret_file.h"
#include "launcher/report/job/status_text.h"
#include "launcher/report/query/ask_options.h"

// The commands about one job of this user. Each returns the exit code.

namespace hlaunch {

// Whether the job answers for itself, so that no rendezvous need be asked.
bool AnswersItself(const OwnJob& job);

// `hlaunch status`, `why` and `stacks`. Require: AnswersItself.
int TellStatusOf(const OwnJob& job, const StatusOptions& options);
int TellRanksOf(const OwnJob& job, AskOptions options);

// Asks the job's rendezvous: becomes `hlaunch-agent` with `words`, the command line, to which the
// job, if it is not `named` there, and its meeting place are added.
int AskAtMeetingOf(const OwnJob& job, std::vector<std::string> words, bool named,
                   const BecomeAgentFn& become_agent);

// Logs the error with the lines that follow it. Returns the exit code.
int FailToFind(const absl::Status& status);

}  // namespace hlaunch
