// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Runs hlaunchd, the node daemon of this host, until a signal asks it to end. Returns the exit
// code. Jobs go on without it. Call while there is one thread.
int RunDaemon(int argc, char** argv);

}  // namespace hlaunch
