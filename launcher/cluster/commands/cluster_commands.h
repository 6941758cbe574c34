// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "launcher/cluster/commands/job_meeting.h"

namespace hlaunch {

// Each runs one of `hlaunch ps`, `nodes` and `top`, from its command line to its exit code.
//
// Requires: the command line begins with that word.
int ShowClusterJobs(int argc, char** argv, const BecomeAgentFn& become_agent);
int ShowClusterHosts(int argc, char** argv);
int ShowTop(int argc, char** argv, const BecomeAgentFn& become_agent);

// Runs a command that exists for other jobs, too (attach, logs, stop, kill, status, why, stacks,
// drain, undrain), if it names a job of the cluster or one of its hosts. Returns the exit code.
// Unset: the command names neither, and nothing was done. A job that is known on this host does not
// count as a job of the cluster.
std::optional<int> RunForCluster(absl::string_view word, int argc, char** argv,
                                 const BecomeAgentFn& become_agent);

}  // namespace hlaunch
