// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The messages between the tasks of a node: lists of words. The first word is the kind.
//
//   task 0 ---- agent NAME=value… ----> task     once, and then until the job is over
//          <--- task LOCAL RANK CPUS -           with its stdout and stderr
//          ---- end CODE ------------>
//   stand-in -- start DIR UMASK ARGC ARGV… NAME=value… --> task   with its descriptors, for each
//            -- signal NUMBER ----------------------->            start of the worker
//            <- started PID --------------------------
//            <- ended CODE SIGNAL --------------------
//            <- failed CODE WHY ----------------------

namespace hlaunch {

inline constexpr absl::string_view kWordAgent = "agent";
inline constexpr absl::string_view kWordTask = "task";
inline constexpr absl::string_view kWordJobEnd = "end";
inline constexpr absl::string_view kWordStart = "start";
inline constexpr absl::string_view kWordSignal = "signal";
inline constexpr absl::string_view kWordStarted = "started";
inline constexpr absl::string_view kWordEnded = "ended";
inline constexpr absl::string_view kWordFailed = "failed";

using TaskMessage = std::vector<std::string>;

// More than the kernel accepts for arguments and environment.
inline constexpr size_t kMaxTaskMessage = 8 << 20;

// `message` as bytes. Requires: no word holds a NUL. Pure.
std::string EncodeTaskMessage(const TaskMessage& message);

// Returns how many bytes follow `head`, the first eight bytes of a message. Pure.
//
// Errors: InvalidArgument - `head` begins no message, or one that is too long.
absl::StatusOr<size_t> TaskMessageBytes(absl::string_view head);
inline constexpr size_t kTaskMessageHead = 8;

// Decodes `bytes`, a message without its head. Pure.
//
// Errors: InvalidArgument - the bytes are no message.
absl::StatusOr<TaskMessage> DecodeTaskMessage(absl::string_view bytes);

// What a worker is started with. A value.
struct WorkerStart {
  std::string directory;
  int umask = 022;
  std::vector<std::string> argv;
  std::vector<std::string> env;
};
TaskMessage MessageOf(const WorkerStart& start);
// Errors: InvalidArgument.
absl::StatusOr<WorkerStart> StartOf(const TaskMessage& message);

// Makes the environment of a task's worker. The agent made `worker` from its `own` environment. If
// the agent left a variable unchanged, the worker gets the task's value, such as its devices and
// what its scheduler says of it. What the agent set or removed stays so. Pure; entries are
// NAME=value.
std::vector<std::string> EnvironmentInTask(const std::vector<std::string>& task,
                                           const std::vector<std::string>& own,
                                           const std::vector<std::string>& worker);

}  // namespace hlaunch
