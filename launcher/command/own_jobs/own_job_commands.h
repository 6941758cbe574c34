// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/command/own_jobs/secret_file.h"

namespace hlaunch {

// Runs `status`, `why`, `stacks`, `logs`, `attach`, `stop` or `kill` if it is about a job of this
// user that runs on this host, or if there is none it could be about. Returns the exit code. Unset:
// the command is about something else, such as a rendezvous that it names, and nothing was done.
// `words` are the command line, of which the first is the program's name.
std::optional<int> RunForOwnJob(const std::vector<std::string>& words,
                                const BecomeAgentFn& become_agent);

// Whether a process of the job `id` of this user runs on this host.
bool RunsHere(const std::string& id);

// Lists the jobs of this user on this host, as `ps` does without a cluster. Returns the exit code.
int ListOwnJobs(bool json);

// Tells where the job `id` stands, as `status` does. `program` is argv[0].
int TellOwnJob(const std::string& program, const std::string& id, bool json,
               const BecomeAgentFn& become_agent);

// The list below that of a cluster: the jobs that the cluster does not know; empty if there are
// none.
std::string OwnJobsBesideCluster();

// `top`: watches the job `id`, or, if that is empty, all that run here.
int WatchOwnJobs(const std::string& program, const std::string& id,
                 const BecomeAgentFn& become_agent);

}  // namespace hlaunch
