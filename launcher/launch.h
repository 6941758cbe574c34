// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <vector>

#include "agent/worker/keeper_link.h"
#include "launcher/node/node_link.h"
#include "launcher/options/options.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// How this program carries out a command of CommandTable().
struct ProgramCommand {
  const char* word;
  std::function<int(int argc, char** argv)> run;  // From the command line to the exit code.
};

// Starts a job on other hosts; from its options to the exit code.
using ConductFn = std::function<int(const Options&, const Environment&, KeeperLink)>;

// All of `hlaunch` from its command line to its exit code: options → job spec → keeper → agent
// → summary. Call from main before any thread exists.
//
// `connect` makes the link of a job with several nodes. Without it, such a job's agent becomes
// the program `hlaunch-agent`, beside this one or in ../libexec/hlaunch, by exec and under the
// same keeper, so that a single node never waits for gRPC to be loaded. The same holds for the
// commands of that program, which are `agent_commands` there, and for jobs on other hosts, which
// `conduct` starts; it is there where `connect` is.
int Launch(int argc, char** argv, const ConnectFn& connect,
           const std::vector<ProgramCommand>& agent_commands = {},
           const ConductFn& conduct = nullptr);

}  // namespace hlaunch
