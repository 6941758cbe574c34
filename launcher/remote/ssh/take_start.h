// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/cli/hosts/start_message.h"

// What both receivers of a start message do with it: `hlaunch agent`, the far end of --hosts, and
// `hlaunch hold`, a part of a job in a cluster of hlaunchd. Belongs to the main thread.

namespace hlaunch {

// Reads the message from stdin. Waits for at most a minute.
//
// Errors:
//   DeadlineExceeded, Unavailable - the message did not come, or only a part of it did.
//   InvalidArgument - what came is no start message.
absl::StatusOr<StartMessage> ReadStart();

// Sets the limits in `message`, as far as this host allows them.
void SetLimits(const StartMessage& message);

// The environment of the job's program: this process's variables, overridden by the message's. The
// message's Python is told and left out if this host has none there.
std::vector<std::string> ChildEnvironment(const StartMessage& message);

}  // namespace hlaunch
