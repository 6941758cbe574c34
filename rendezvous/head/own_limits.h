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
  int max_waiting = 1000;               // Jobs of a user.
  size_t max_waiting_bytes = 64 << 20;  // Of what a user's waiting jobs are started with.
  int max_running = 0;                  // Jobs of a user at the same time; 0: no limit.
  int max_nodes = 0;                    // The nodes of those; 0: no limit.
  int max_jobs = 20000;                 // Of all users, without those that have ended.
};

// What a user has. A value.
struct OwnJobs {
  int waiting = 0;
  size_t waiting_bytes = 0;
  int running = 0;
  int nodes = 0;
};

// About what a job's request takes in memory.
size_t BytesOf(const JobRequest& request);

// Errors:
//   ResourceExhausted - the user has too much already; the message says of what.
//   InvalidArgument - one job may not be as large.
absl::Status MaySubmit(const JobRequest& request, const OwnJobs& own, int all_jobs,
                       const OwnLimits& limits);

// Why a job must wait for others of its user; empty: it need not.
std::string OverOwnLimit(const JobRequest& request, const OwnJobs& own, const OwnLimits& limits);

}  // namespace hlaunch
