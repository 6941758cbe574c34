// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launcher/environment/tasks/task_message.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

// The sockets of the tasks of a node. They are abstract: they need no directory and end with their
// process. They are for one user only: each side checks the user of its peer.

namespace hlaunch {

// A message and the descriptors that came with it. A movable value.
struct ReceivedMessage {
  TaskMessage words;
  std::vector<UniqueFd> descriptors;
};

// The address of task `local` among the tasks that share `name`. Pure but for the user's number.
std::string TaskAddress(const std::string& name, int local);

// Listens at `address`.
//
// Errors:
//   AlreadyExists - another process listens there.
//   ResourceExhausted.
absl::StatusOr<UniqueFd> ListenAsTask(const std::string& address);

// The next connection of `listener` from a process of this user; invalid if there is none.
UniqueFd AcceptOwn(int listener);

// Connects to the task at `address`.
//
// Errors:
//   NotFound - no process listens there.
//   PermissionDenied - a process of another user does.
//   ResourceExhausted, Unavailable.
absl::StatusOr<UniqueFd> ConnectToTask(const std::string& address);

// The process that listens at the other end of `socket`; 0 if this process cannot see it.
pid_t PeerOf(int socket);

// Sends `message` with `descriptors`.
//
// Errors: Unavailable - the peer is gone, or does not read.
absl::Status SendTaskMessage(int socket, const TaskMessage& message,
                             absl::Span<const int> descriptors = {});

// Waits until `deadline` for the next message.
//
// Errors:
//   DeadlineExceeded.
//   Unavailable - the peer is gone.
//   InvalidArgument - what it sent is no message.
absl::StatusOr<ReceivedMessage> ReceiveTaskMessage(int socket, Instant deadline);

// The CPUs that this process may run on, as one word.
std::string CpusAsWord();

}  // namespace hlaunch
