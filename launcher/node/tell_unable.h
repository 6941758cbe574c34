// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "launcher/job/job_spec.h"
#include "launcher/node/node_link.h"
#include "launcher/options/options.h"

namespace hlaunch {

// Tells the other nodes of the job that this one cannot start for `reason` and exits with
// `exit_code`, so that nobody waits for it. The node joins and leaves in one message. Takes 3 s at
// most: who is not there by then is not told. Where this node is to host the rendezvous, it does so
// for that time.
//
// `meeting` says where the nodes meet; it need not have workers. No effect for a job of one node,
// or without `connect`.
void TellUnable(const JobSpec& meeting, const Options& options, const ConnectFn& connect,
                const std::string& reason, int exit_code);

}  // namespace hlaunch
