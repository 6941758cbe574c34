// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// Run `hlaunch attach` and `hlaunch logs` from their command lines to their exit codes.
//
// Requires: the command line begins with the command's word.
int AttachJob(int argc, char** argv);
int ShowLogs(int argc, char** argv);

// The same for `hlaunch stop` and `hlaunch kill`.
int StopJob(int argc, char** argv);
int KillJob(int argc, char** argv);

}  // namespace hlaunch
