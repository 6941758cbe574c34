// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What the tasks of a node say to each other: lists of words, the first of which says what it is.
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

// More than the kernel takes for arguments and environment.
inline constexpr size_t kMaxTaskMessage = 8 << 20;

// `message` as bytes. Requires: no word holds a NUL. Pure.
std::string EncodeTaskMessage(const TaskMessage& message);

// The bytes of the whole message whose first eight are `head`. Pure.
//
// Errors: InvalidArgument - they begin none, or one that is too long.
absl::StatusOr<size_t> TaskMessageBytes(absl::string_view head);
inline constexpr size_t kTaskMessageHead = 8;

// `bytes`, without their head, as the message. Pure.
//
// Errors: InvalidArgument - they are none.
absl::StatusOr<TaskMessage> DecodeTaskMessage(absl::string_view bytes);

// What a worker is to be started with. A value.
struct WorkerStart {
  std::string directory;
  int umask = 022;
  std::vector<std::string> argv;
  std::vector<std::string> env;
};
TaskMessage MessageOf(const WorkerStart& start);
// Errors: InvalidArgument.
absl::StatusOr<WorkerStart> StartOf(const TaskMessage& message);

// Decides what the worker of a task sees. The agent has made `worker` out of its `own`
// environment; what it left as it was, is the task's: its devices and what its scheduler says of
// it. What it has set or taken away stays so. Pure; entries are NAME=value.
std::vector<std::string> EnvironmentInTask(const std::vector<std::string>& task,
                                           const std::vector<std::string>& own,
                                           const std::vector<std::string>& worker);

}  // namespace hlaunch
