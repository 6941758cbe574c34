// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "proto/cluster/cluster_messages.h"
#include "rendezvous/cluster/head/head_job.h"
#include "rendezvous/cluster/head/host_book.h"
#include "rendezvous/cluster/head/job_book.h"

// What people are told of a job. All is pure.

namespace hlaunch {

// Returns "node 1 (node3)", or "node3" in a job of one node.
std::string NameOf(const HeadJob& job, const HeadPart& part);

// Returns what a starting job waits for.
std::string WhyStarting(const HeadJob& job);

// Returns the exit code of the lowest node rank that has one. If the job was told to end and that
// node says only that another node was stopped or lost, or that the rendezvous was lost, returns
// the code of the signal.
std::optional<int> ExitCodeOf(const HeadJob& job);

// Returns why a job whose parts are all closed has ended.
std::string HowItEnded(const HeadJob& job);

// `words` adds the command line, for users who may see it.
JobView ViewOf(const HeadJob& job, const JobBook& jobs, const HostBook& hosts, bool words);

}  // namespace hlaunch
