// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/workers/worker/keeper_link.h"
#include "launcher/cli/options/options.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// Runs a job on other hosts from its options to its exit code: hosts its rendezvous here, starts an
// agent on each host, and stays until all of them have ended. Call before any other thread exists.
//
// Requires: options.hosts.any().
int ConductJob(const Options& options, const Environment& environment, KeeperLink keeper);

}  // namespace hlaunch
