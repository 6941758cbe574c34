// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// All of `hlaunch cluster …` from its command line to its exit code. In hlaunchd, which has
// OpenSSL; `hlaunch` becomes that. Call while there is one thread.
//
// Requires: the command line begins with `cluster`.
int RunClusterWord(int argc, char** argv);

}  // namespace hlaunch
