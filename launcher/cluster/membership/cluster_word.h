// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Runs `hlaunch cluster …` from its command line to its exit code. This is a part of hlaunchd,
// which has OpenSSL; `hlaunch` replaces itself with hlaunchd for it. Call while there is one
// thread.
//
// Requires: the command line begins with `cluster`.
int RunClusterWord(int argc, char** argv);

}  // namespace hlaunch
