// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "proto/cluster/cluster_messages.h"

// How much one user may have of a cluster, and how much its queue holds. All is pure.

namespace hlaunch {

// A value.
struct OwnLimits {
  int max_waiting = 1000;               // Waiting jobs of a user.
  size_t max_waiting_bytes = 64 << 20;  // The requests of a user's waiting jobs.
  int max_running = 0;                  // Running jobs of a user; 0: no limit.
  int max_nodes = 0;                    // Nodes of a user's running jobs; 0: no limit.
  int max_jobs = 20000;                 // Jobs of all users that have not ended.
};

// What a user has. A value.
struct OwnJobs {
  int waiting = 0;
  size_t waiting_bytes = 0;
  int running = 0;
  int nodes = 0;
};

// Returns about how many bytes a job's request takes in memory.
size_t BytesOf(const JobRequest& request);

// Errors:
//   ResourceExhausted - the user has too much already; the message says of what.
//   InvalidArgument - the job is larger than a job may be.
absl::Status MaySubmit(const JobRequest& request, const OwnJobs& own, int all_jobs,
                       const OwnLimits& limits);

// Returns why a job must wait for other jobs of its user; empty if it need not.
std::string OverOwnLimit(const JobRequest& request, const OwnJobs& own, const OwnLimits& limits);

}  // namespace hlaunch
