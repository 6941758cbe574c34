// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "launcher/remote/ssh/starter.h"

namespace hlaunch {

// Reads the program of this process, which is both `hlaunch` and its agent, to send it to hosts. It
// carries hlaunch-pmix, if that is beside it.
//
// Errors:
//   FailedPrecondition - it needs shared libraries, which a host may not have.
//   ResourceExhausted - it cannot be read, or is too large to send.
absl::StatusOr<std::shared_ptr<const PushedProgram>> ProgramToPush();

}  // namespace hlaunch
