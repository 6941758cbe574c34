// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/detached/job_record.h"
#include "launcher/words/environment.h"

// The detached jobs of a user, each in a directory of its own.

namespace hlaunch {

// Jobs that have ended are kept up to this number.
inline constexpr size_t kKeptJobs = 20;

// Where the directories of jobs are: ${XDG_STATE_HOME:-~/.local/state}/hlaunch; empty: the user has
// no home directory. Pure.
std::string JobsDirectory(const Environment& environment);

// All of them, the last that was started first.
std::vector<DetachedJob> KnownJobs(const std::string& jobs_directory);

// The job `id` of `known`; if that is empty the only one that runs, or where none does, and
// one that has ended will do, the only one.
//
// Errors:
//   NotFound - there is no such job.
//   InvalidArgument - several may be meant; the message lists them.
absl::StatusOr<DetachedJob> ChooseJob(const std::vector<DetachedJob>& known, const std::string& id,
                                      bool ended_will_do);

// Makes an empty directory for the job `id`, in the place of one of that name that has ended, and
// removes the oldest of those that have ended.
//
// Errors:
//   AlreadyExists - a job of that id runs.
//   InvalidArgument - the id is no name of a file, or the directory cannot be made.
absl::StatusOr<std::string> MakeJobDirectory(const std::string& jobs_directory,
                                             const std::string& id);

// "running", "ended, exit code 3", "lost", "running on node0?".
std::string LifeText(const DetachedJob& job);

// One line for each job, and the same for programs. Pure.
std::string JobsText(const std::vector<DetachedJob>& jobs);
std::string JobsJson(const std::vector<DetachedJob>& jobs);

// What is known of one without asking its nodes. Pure.
std::string OneJobText(const DetachedJob& job);
std::string OneJobJson(const DetachedJob& job);

}  // namespace hlaunch
