// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <vector>

#include "agent/workers/worker/keeper_link.h"
#include "launcher/cli/options/options.h"
#include "launcher/node/node_link.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// How this program carries out a command of CommandTable().
struct ProgramCommand {
  const char* word;
  std::function<int(int argc, char** argv)> run;  // Takes the command line, returns the exit code.
};

// Runs a job on other hosts. Takes its options, returns the exit code.
using ConductFn = std::function<int(const Options&, const Environment&, KeeperLink)>;

// Runs `hlaunch`, from its command line to its exit code: options → job spec → keeper → agent →
// summary. Call from main before any thread exists.
//
// `connect` makes the link of a job with several nodes. If it is null, the agent of such a job
// execs the program `hlaunch-agent`, beside this program or in ../libexec/hlaunch, under the same
// keeper. So a job with a single node never waits until gRPC is loaded. `agent_commands` are the
// commands that only `hlaunch-agent` can carry out, and `conduct` runs a job on other hosts. Only
// `hlaunch-agent` passes these arguments; without them, its commands and such jobs exec it as well.
int Launch(int argc, char** argv, const ConnectFn& connect,
           const std::vector<ProgramCommand>& agent_commands = {},
           const ConductFn& conduct = nullptr);

}  // namespace hlaunch
