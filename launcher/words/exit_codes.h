// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"

namespace hlaunch {

// What failed, which decides what a status means to whoever reads the exit code.
enum class FailedStep {
  kPrepare,  // Options, token, program and devices, before anything was started.
  kMeet,     // Listening for the other nodes, or finding where they meet.
  kAsk,      // A question to a rendezvous that runs.
};

// What a program of hlaunch exits with because `step` failed with `status`, as listed in
// proto/contract/exit_code.h. Pure.
int ExitCodeOf(FailedStep step, const absl::Status& status);

// hlaunch's own exit codes in words: "193 to 199, 247 to 252 and 254". Pure.
std::string OwnExitCodes();

}  // namespace hlaunch
