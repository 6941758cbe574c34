// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "launcher/own_cluster/job_meeting.h"

namespace hlaunch {

// All of `hlaunch ps`, `nodes` and `top` from their command line to their exit code.
//
// Requires: the command line begins with that word.
int ShowClusterJobs(int argc, char** argv);
int ShowClusterHosts(int argc, char** argv);
int ShowTop(int argc, char** argv, const BecomeAgentFn& become_agent);

// A word that is for other jobs, too (attach, logs, stop, kill, status, why, stacks, drain,
// undrain), where it names a job of the cluster or one of its hosts: all of it to its exit code.
// Unset: it does not, and nothing was done. A job that is known on this host is none of the
// cluster's.
std::optional<int> RunForCluster(absl::string_view word, int argc, char** argv,
                                 const BecomeAgentFn& become_agent);

}  // namespace hlaunch
