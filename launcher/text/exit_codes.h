// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// The step that failed. It decides which exit code a status has.
enum class FailedStep {
  kPrepare,  // Reading options, token, program and devices, before anything starts.
  kMeet,     // Listening for the other nodes, or finding where they meet.
  kAsk,      // Asking a rendezvous that runs.
};

// Returns the exit code of a program of hlaunch whose `step` failed with `status`, as listed in
// proto/contract/exit_code.h. Pure.
int ExitCodeOf(FailedStep step, const absl::Status& status);

// Returns hlaunch's own exit codes in words: "193 to 199, 247 to 252 and 254". Pure.
std::string OwnExitCodes();

// Writes what waits in stdout, as the last step of a command that only prints. Returns kExitOk, or
// kExitNoResources after a line that says why not all was written.
int FlushStdout();

}  // namespace hlaunch
