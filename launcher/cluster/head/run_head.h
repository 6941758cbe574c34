// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Runs `hlaunchd head`, the head of a cluster of one's own, from its command line to its exit code,
// which is 0 when a signal has stopped it. Call while there is one thread.
//
// Requires: argv[1] is "head".
int RunHead(int argc, char** argv);

}  // namespace hlaunch
