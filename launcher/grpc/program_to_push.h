// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "launcher/remote/starter.h"

namespace hlaunch {

// The program of this process, which is `hlaunch` as well as its agent, to be sent to hosts.
//
// Errors:
//   FailedPrecondition - it needs shared libraries, which a host may not have.
//   ResourceExhausted - it cannot be read, or is larger than anybody would send.
absl::StatusOr<std::shared_ptr<const PushedProgram>> ProgramToPush();

}  // namespace hlaunch
