// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/command/own_jobs/secret_file.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// Runs a command that asks a job's own rendezvous, if one of its words names a job of the cluster.
// Returns the exit code. For a job without a rendezvous, `status` tells what the head knows. Unset:
// no word names such a job, and nothing was done.
std::optional<int> RunAtMeeting(const std::vector<std::string>& words,
                                const BecomeAgentFn& become_agent);

// The same for the job `number`, which words[at] names.
int AskNodesOf(std::vector<std::string> words, size_t at, uint64_t number,
               const BecomeAgentFn& become_agent);

// Returns `words`, a command line that asks a rendezvous, with words[at] and further options set to
// ask the rendezvous of the cluster's job `job`. `secret` is the open descriptor that has the
// token. Pure.
std::vector<std::string> WithMeetingOfCluster(std::vector<std::string> words, size_t at,
                                              uint64_t job, const MeetingAnswer& meeting,
                                              int secret);

}  // namespace hlaunch
