// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "launcher/hosts/start_message.h"
#include "launcher/part_start/part_limits.h"
#include "launcher/part_start/user_entry.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What a part's process is to become. A value.
struct PartStart {
  uint64_t job = 0;
  std::string user;
  uid_t uid = 0;
  UserRule rule;
  PartLimits limits;
  std::string private_tmp;  // The folder to be made for it; empty: /tmp is the host's.
  std::string folder;       // The job folder, which becomes the user's.
  std::string program;      // `hlaunch`.
  StartMessage message;
};

// The process of a part that waits to be let go. Belongs to one thread; movable.
struct WaitingPart {
  pid_t pid = 0;
  UniqueFd gate;       // One byte lets it go; where it is closed without, the process ends.
  UniqueFd complaint;  // Why it could not start, in words; its end without any: it did.
};

// Forks the process of a part. Once it is let go it enters a scope of its own, becomes the user and
// executes `program hold --stdin`, which reads `message`. Whatever may take long is done there, so
// the caller's loop goes on. It is a child of the caller, who reaps it, and outlives him.
//
// Requires: the caller is root and has one thread.
// Errors:
//   ResourceExhausted - out of processes, descriptors or memory.
absl::StatusOr<WaitingPart> ForkPart(const PartStart& start);

// Lets it go.
void LetGo(WaitingPart& part);

}  // namespace hlaunch
