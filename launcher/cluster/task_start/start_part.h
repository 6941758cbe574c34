// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/cli/hosts/start_message.h"
#include "launcher/cluster/task_start/part_limits.h"
#include "launcher/cluster/task_start/user_entry.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What a part's process shall become. A value.
struct PartStart {
  uint64_t job = 0;
  std::string user;
  uid_t uid = 0;
  UserRule rule;
  PartLimits limits;
  std::string private_tmp;  // The folder to make for a private /tmp; empty: /tmp is the host's.
  std::string folder;       // The job folder, which this gives to the user.
  std::string program;      // The path of `hlaunch`.
  StartMessage message;
};

// A part's process that waits for LetGo. Belongs to one thread. Movable.
struct WaitingPart {
  pid_t pid = 0;
  UniqueFd gate;       // One byte lets the process go on. Closed without a byte, it ends.
  UniqueFd complaint;  // Text: why the part could not start. End of file alone: it started.
};

// Forks the process of a part. After LetGo the process enters a scope of its own, becomes the user
// and executes `program hold --stdin`, which reads `message`. All that may take long is done in the
// child, so the caller's loop goes on. The process is a child of the caller, which reaps it. It
// outlives the caller.
//
// Requires: the caller is root and has one thread.
// Errors:
//   ResourceExhausted - there are no processes, descriptors or memory left.
absl::StatusOr<WaitingPart> ForkPart(const PartStart& start);

// Lets the process go on.
void LetGo(WaitingPart& part);

}  // namespace hlaunch
