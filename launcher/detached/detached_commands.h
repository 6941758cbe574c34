// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// All of `hlaunch attach` and `hlaunch logs` from their command line to their exit code.
//
// Requires: the command line begins with that word.
int AttachJob(int argc, char** argv);
int ShowLogs(int argc, char** argv);

// The same of `hlaunch stop` and `kill`.
int StopJob(int argc, char** argv);
int KillJob(int argc, char** argv);

}  // namespace hlaunch
