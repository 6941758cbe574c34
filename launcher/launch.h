// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "launcher/node_link.h"

namespace hlaunch {

// All of `hlaunch` from its command line to its exit code: options → job spec → keeper → agent
// → summary. Call from main before any thread exists.
//
// `connect` makes the link of a job with several nodes; without it, such a job is handed to
// the program `hlaunch-agent` that lies beside this one, so that a single node never waits for
// gRPC to be loaded.
int Launch(int argc, char** argv, const ConnectFn& connect);

}  // namespace hlaunch
