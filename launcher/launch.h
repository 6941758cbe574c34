// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "launcher/node/node_link.h"

namespace hlaunch {

// All of `hlaunch` from its command line to its exit code: options → job spec → keeper → agent
// → summary. Call from main before any thread exists.
//
// `connect` makes the link of a job with several nodes. Without it, such a job's agent becomes
// the program `hlaunch-agent`, beside this one or in ../libexec/hlaunch, by exec and under the
// same keeper, so that a single node never waits for gRPC to be loaded.
int Launch(int argc, char** argv, const ConnectFn& connect);

}  // namespace hlaunch
