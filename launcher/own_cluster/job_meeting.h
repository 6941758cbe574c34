// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/unique_fd.h"
#include "proto/cluster/cluster_messages.h"

namespace hlaunch {

// Becomes `hlaunch-agent` with these words, the program's name first. Returns an exit code, and
// only if it cannot.
using BecomeAgentFn = std::function<int(const std::vector<std::string>& words)>;

// A command that asks a job's own rendezvous, where one of its words names a job of the cluster:
// all of it to its exit code. Of a job that has none, `status` tells what the head knows. Unset: no
// word does, and nothing was done.
std::optional<int> RunAtMeeting(const std::vector<std::string>& words,
                                const BecomeAgentFn& become_agent);

// The same for the job `number`, which the word number `at` names.
int AskNodesOf(std::vector<std::string> words, size_t at, uint64_t number,
               const BecomeAgentFn& become_agent);

// A secret in a file without a name, which this user alone can read.
//
// Errors:
//   ResourceExhausted - there is no such file.
absl::StatusOr<UniqueFd> SecretFile(const std::string& secret);

// `words` of a command that asks a rendezvous, with that of the cluster's job `job` in the place of
// the word number `at`, which names it; the secret is in the open descriptor `secret`. Pure.
std::vector<std::string> WithMeetingOfCluster(std::vector<std::string> words, size_t at,
                                              uint64_t job, const MeetingAnswer& meeting,
                                              int secret);

}  // namespace hlaunch
