// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cluster/client/cluster_questions.h"
#include "proto/cluster/cluster_messages.h"

// Texts about a cluster's jobs and hosts, for people in at most 80 columns, and for programs. All
// functions are pure. Much of the text comes from other users and hosts.

namespace hlaunch {

// A table of jobs. Below each job that does not run stands the reason. If there are no jobs, one
// line says so. Lines below the table tell what the list lacks.
std::string ClusterJobsText(const JobsAnswer& answer, int64_t now_ms);
std::string ClusterJobsJson(const JobsAnswer& answer);

// One job with its nodes.
std::string ClusterJobText(const JobView& job, int64_t now_ms);
std::string ClusterJobJson(const JobView& job);

// A table of hosts: what is free and what is in use, and why a host takes no jobs.
std::string HostsText(const HostsAnswer& answer, int64_t now_ms);
std::string HostsJson(const HostsAnswer& answer);

// One line each: "job 17 waits: needs 2 nodes …", "job 17 starts on node1, node2", "job 17 runs on
// …".
std::string WaitingText(const JobView& job);
std::string StartingText(const JobView& job);
std::string RunningText(const JobView& job);

}  // namespace hlaunch
