// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "launcher/cluster_client/local_client.h"
#include "launcher/options/options.h"

// Whether a job goes to the cluster of this host's hlaunchd, or starts here. All is pure.

namespace hlaunch {

// What the decision needs beside the command line. A value.
struct ClusterFacts {
  bool in_worker = false;  // Of another job.
  bool is_part = false;    // This is a part of a job already, or its agent.
  std::string scheduler;   // In whose job this is; empty: in none.
};

enum class JobGoes {
  kHere,        // Whatever there is.
  kWhereItCan,  // To the cluster where there is one; else here.
  kToCluster,   // There, or nowhere.
};

// A value.
struct FirstDecision {
  JobGoes goes = JobGoes::kHere;
  std::string why;  // In words.
};

// What the command line and its surroundings say, before anybody is asked. Several nodes of which
// nobody says where they are go where they can; --cluster hlaunchd, and the options that say which
// of the cluster's hosts, demand it, of one node too.
//
// Errors:
//   InvalidArgument - it demands the cluster, and something that only a job has that starts here.
absl::StatusOr<FirstDecision> DecideByWords(const Options& options, const ClusterFacts& facts);

// The same once this host's hlaunchd has been asked who it is: whether the job goes to the cluster.
//
// Errors:
//   FailedPrecondition - it is to go there, and cannot; the message says why, and what else to do.
absl::StatusOr<bool> DecideByAnswer(const FirstDecision& first,
                                    const absl::StatusOr<HereAnswer>& here);

// "hlaunchd of node1 does not reach the cluster's head node0:29400: …"
std::string WithoutHead(const HereAnswer& here);

}  // namespace hlaunch
