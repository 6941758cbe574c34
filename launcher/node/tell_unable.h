// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/cli/options/options.h"
#include "launcher/job/spec/job_spec.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// Tells the other nodes of the job that this node cannot start because of `reason` and exits with
// `exit_code`, so that they do not wait for it. The node joins and leaves in one message. Takes 3 s
// at most: nodes that are not there by then are not told. If this node must host the rendezvous, it
// hosts for that time.
//
// `meeting` says where the nodes meet; it needs no workers. No effect for a job of one node, for a
// job of kListenAndPrint, or without `connect`.
void TellUnable(const JobSpec& meeting, const Options& options, const ConnectFn& connect,
                const std::string& reason, int exit_code);

}  // namespace hlaunch
