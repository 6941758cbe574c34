// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/job/socket/find_sockets.h"
#include "launcher/remote/detached/job_record.h"

namespace hlaunch {

// A job of this user. A value.
struct OwnJob {
  std::string id;
  // Its processes on this host that can be asked; the one to ask comes first. None: the job has
  // ended, runs elsewhere, or does not answer.
  std::vector<FoundJob> parts;
  std::optional<DetachedJob> kept;  // Its record, if it was started with --detach.

  bool runs() const { return !parts.empty() || (kept && kept->life == JobLife::kRuns); }
  bool detached() const { return kept.has_value(); }
};

struct OwnJobList {
  std::vector<OwnJob> jobs;   // The one started last first.
  std::vector<pid_t> silent;  // Processes of jobs that do not answer.
};

// Finds the jobs of this user that run on this host, and those that --detach has kept. If `wanted`
// is not among them and this user is root, also the jobs of other users. Reads /proc and the
// records.
OwnJobList FindOwnJobs(const std::string& wanted = "");

// Makes one job of the processes of a user that have one id; but each that decides for itself, as
// of one node, is a job. Pure.
std::vector<OwnJob> GroupJobs(std::vector<FoundJob> found, const std::vector<DetachedJob>& kept);

// Returns the job `id`, or, if that is empty, the only one that runs. `command` is the command's
// word, for messages. Pure.
//
// Errors:
//   NotFound - there is no such job, or none runs here.
//   InvalidArgument - several jobs run, or several of that name; the message lists them.
absl::StatusOr<OwnJob> ChooseOwnJob(const OwnJobList& known, const std::string& id,
                                    absl::string_view command);

// The jobs in a table, or as JSON for programs, as JobsText and JobsJson show detached ones. Pure.
std::string OwnJobsText(const OwnJobList& known);
std::string OwnJobsJson(const OwnJobList& known);

// Those of `known` that run. Pure.
OwnJobList Running(OwnJobList known);

}  // namespace hlaunch
