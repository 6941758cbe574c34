// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/worker/keeper.h"
#include "launcher/job/job_spec.h"
#include "launcher/node/node_link.h"

namespace hlaunch {

// Runs this node's part of the job: link → agent → summary. The host of the rendezvous stays
// until the other nodes have heard the outcome, within bounds. Returns what `hlaunch` exits with;
// no worker lives then. Call once, on the main thread, under the keeper.
int RunNode(const Options& options, const JobSpec& spec, KeeperLink keeper,
            const ConnectFn& connect);

}  // namespace hlaunch
