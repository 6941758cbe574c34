// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cluster_client/cluster_questions.h"
#include "proto/cluster/cluster_messages.h"

// What is shown of a cluster's jobs and hosts, to people in at most 80 columns and to programs.
// Pure: much of it is what other users and hosts say.

namespace hlaunch {

// A table of jobs; below each that waits or has ended, why. Nothing there: a line that says so.
// What is not in the list is told in a line below it.
std::string ClusterJobsText(const JobsAnswer& answer, int64_t now_ms);
std::string ClusterJobsJson(const JobsAnswer& answer);

// One job with its nodes.
std::string ClusterJobText(const JobView& job, int64_t now_ms);
std::string ClusterJobJson(const JobView& job);

// A table of hosts: what is free and held, and why one takes no part.
std::string HostsText(const HostsAnswer& answer, int64_t now_ms);
std::string HostsJson(const HostsAnswer& answer);

// A line each: "job 17 waits: needs 2 nodes …", "job 17 starts on node1, node2", "job 17 runs on
// …".
std::string WaitingText(const JobView& job);
std::string StartingText(const JobView& job);
std::string RunningText(const JobView& job);

}  // namespace hlaunch
