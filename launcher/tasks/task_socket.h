// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launcher/tasks/task_message.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

// The sockets of the tasks of a node: abstract ones, which need no directory, end with their
// process, and are of this user alone: each side looks whose process the other one is.

namespace hlaunch {

// A message, and the descriptors that came with it. A movable value.
struct ReceivedMessage {
  TaskMessage words;
  std::vector<UniqueFd> descriptors;
};

// The address of task `local` of those that share `name`. Pure but for the user's number.
std::string TaskAddress(const std::string& name, int local);

// Listens at `address`.
//
// Errors:
//   AlreadyExists - somebody else does.
//   ResourceExhausted.
absl::StatusOr<UniqueFd> ListenAsTask(const std::string& address);

// The next connection of `listener`, of this user's processes; invalid: there is none.
UniqueFd AcceptOwn(int listener);

// Connects to the task at `address`.
//
// Errors:
//   NotFound - nobody listens there.
//   PermissionDenied - another user does.
//   ResourceExhausted, Unavailable.
absl::StatusOr<UniqueFd> ConnectToTask(const std::string& address);

// The process that listens where `socket` has connected to; 0: it is not in sight.
pid_t PeerOf(int socket);

// Sends `message` with `descriptors`.
//
// Errors: Unavailable - the other side is gone, or does not read.
absl::Status SendTaskMessage(int socket, const TaskMessage& message,
                             absl::Span<const int> descriptors = {});

// Waits until `deadline` for the next message.
//
// Errors:
//   DeadlineExceeded.
//   Unavailable - the other side is gone.
//   InvalidArgument - what it says is no message.
absl::StatusOr<ReceivedMessage> ReceiveTaskMessage(int socket, Instant deadline);

// The CPUs that this process may run on, as one word.
std::string CpusAsWord();

}  // namespace hlaunch
