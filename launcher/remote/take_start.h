// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/hosts/start_message.h"

// What the two receivers of a start message do with it: `hlaunch agent`, the far end of --hosts,
// and `hlaunch hold`, a part of a job of a cluster of one's own. Belongs to the main thread.

namespace hlaunch {

// The message on stdin. Waits a minute for it.
//
// Errors:
//   DeadlineExceeded, Unavailable - it did not come, or not all of it.
//   InvalidArgument - it is none.
absl::StatusOr<StartMessage> ReadStart();

// Sets the limits of `message`, as far as this host allows them.
void SetLimits(const StartMessage& message);

// What the job's program sees: what is set here, and over it what came.
std::vector<std::string> ChildEnvironment(const StartMessage& message);

}  // namespace hlaunch
