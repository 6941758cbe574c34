// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "launcher/command/own_jobs/own_jobs.h"
#include "launcher/remote/detached/detached_words.h"

// `hlaunch logs`, `attach`, `stop` and `kill` for a job that was not started with --detach. Each
// returns the exit code.

namespace hlaunch {

// Names the files with the job's output, or says where the output goes.
int TellLogsOf(const OwnJob& job);

// Says why `attach` is not for this job, and what is.
int RefuseToAttach(const OwnJob& job);

// Ends the job as Ctrl-C in its terminal does, and waits until its processes here are gone. Kills
// it after `grace`; unset: never. `named` is whether the user named the job: else says so only.
int EndOwnJob(const OwnJob& job, absl::string_view command, bool named,
              std::optional<Duration> grace);

}  // namespace hlaunch
