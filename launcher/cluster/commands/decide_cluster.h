// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "launcher/cli/options/options.h"
#include "launcher/cluster/client/local_client.h"

// Decides whether a job goes to the cluster of this host's hlaunchd, or starts here. All functions
// are pure.

namespace hlaunch {

// What the decision needs besides the command line. A value.
struct ClusterFacts {
  bool in_worker = false;  // This is a worker of another job.
  bool is_part = false;    // This is a part of a job already, or its agent.
  std::string scheduler;   // The scheduler in whose job this is; empty: none.
};

enum class JobGoes {
  kHere,        // In any case.
  kWhereItCan,  // To the cluster if there is one, else here.
  kToCluster,   // To the cluster, or the job fails.
};

// A value.
struct FirstDecision {
  JobGoes goes = JobGoes::kHere;
  std::string why;  // The reason in words.
};

// The decision by the command line and its surroundings, before hlaunchd is asked. A job of several
// nodes goes where it can, if nothing says where its nodes are. --cluster hlaunchd, and the options
// that choose hosts of the cluster, demand the cluster, for one node, too.
//
// Errors:
//   InvalidArgument - the command line demands the cluster, and also something that only a job that
//       starts here can have.
absl::StatusOr<FirstDecision> DecideByWords(const Options& options, const ClusterFacts& facts);

// The decision once this host's hlaunchd has answered the question `here`. Returns true if the job
// goes to the cluster.
//
// Errors:
//   FailedPrecondition - the job must go to the cluster, and this host is in none.
//   Unavailable - hlaunchd does not reach its head.
//   Other errors of AskHere; the message says what else to do.
absl::StatusOr<bool> DecideByAnswer(const FirstDecision& first,
                                    const absl::StatusOr<HereAnswer>& here);

// "this host's hlaunchd does not reach the head of its cluster, node0:29400: …"
std::string WithoutHead(const HereAnswer& here);

}  // namespace hlaunch
