// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "proto/cluster/cluster_messages.h"
#include "rendezvous/head/head_job.h"
#include "rendezvous/head/host_book.h"
#include "rendezvous/head/job_book.h"

// What people are told of a job. All is pure.

namespace hlaunch {

// "node 1 (node3)"; a job of one node: "node3".
std::string NameOf(const HeadJob& job, const HeadPart& part);

// What a job that is starting waits for.
std::string WhyStarting(const HeadJob& job);

// The code of the lowest node rank that has one; of the signal, where the job was told to end and
// that node says no more than that another one was stopped or lost.
std::optional<int> ExitCodeOf(const HeadJob& job);

// Why a job whose parts are all closed has ended.
std::string HowItEnded(const HeadJob& job);

// `words`: with the command line, for those who may see it.
JobView ViewOf(const HeadJob& job, const JobBook& jobs, const HostBook& hosts, bool words);

}  // namespace hlaunch
