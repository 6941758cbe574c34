// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/remote/detached/job_record.h"
#include "launcher/text/environment.h"

// The detached jobs of a user. Each has a directory of its own.

namespace hlaunch {

// This many ended jobs are kept.
inline constexpr size_t kKeptJobs = 20;

// The folder of the jobs' directories: ${XDG_STATE_HOME:-~/.local/state}/hlaunch; empty if the user
// has no home directory. Pure.
std::string JobsDirectory(const Environment& environment);

// All of them, the one started last first.
std::vector<DetachedJob> KnownJobs(const std::string& jobs_directory);

// Returns the job `id` of `known`. If `id` is empty, returns the only job that runs; if none runs
// and `ended_will_do`, the only job.
//
// Errors:
//   NotFound - there is no such job.
//   InvalidArgument - several jobs may be meant; the message lists them.
absl::StatusOr<DetachedJob> ChooseJob(const std::vector<DetachedJob>& known, const std::string& id,
                                      bool ended_will_do);

// Makes an empty directory for the job `id`, which replaces one of that name that has ended.
// Removes the oldest ended jobs.
//
// Errors:
//   AlreadyExists - a job with that id runs.
//   InvalidArgument - the id is no valid file name, or the directory cannot be made.
absl::StatusOr<std::string> MakeJobDirectory(const std::string& jobs_directory,
                                             const std::string& id);

// As in "running", "ended, exit code 3", "lost: what held it was killed", "started on node0, not
// ended".
std::string LifeText(const DetachedJob& job);

// One line for each job; and the same as JSON. Pure.
std::string JobsText(const std::vector<DetachedJob>& jobs);
std::string JobsJson(const std::vector<DetachedJob>& jobs);

// What is known of one job without asking its nodes. Pure.
std::string OneJobText(const DetachedJob& job);
std::string OneJobJson(const DetachedJob& job);

}  // namespace hlaunch
