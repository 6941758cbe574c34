// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "launcher/job/socket/job_messages.h"
#include "launcher/job/socket/socket_name.h"

namespace hlaunch {

// A process of this host that has a job's socket and has said who it is. A value.
struct FoundJob {
  JobSocketName socket;
  pid_t pid = 0;  // As this process sees it; 0 if it does not.
  JobHere here;
};

struct FoundJobs {
  std::vector<FoundJob> jobs;
  std::vector<pid_t> silent;  // Processes that do not answer; their jobs are unknown.
};

// Asks all jobs of this user on this host who they are; root may ask those of all users. Takes two
// seconds at most, and as long as that only if a job does not answer. Reads /proc.
FoundJobs FindJobs(std::optional<uid_t> uid);

}  // namespace hlaunch
