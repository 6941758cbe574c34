// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/worker/worker_spec.h"
#include "launcher/cluster/node_tasks.h"
#include "launcher/tasks/task_message.h"
#include "launcher/words/environment.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What task 0 holds of its node's other tasks. While it is held they wait for workers; when it is
// gone without an end, they end what they run. A movable value.
class GatheredTasks {
 public:
  GatheredTasks() = default;

  // Waits until all other tasks of the node have come, at most `patience`.
  //
  // Errors:
  //   InvalidArgument - which one did not come, or what does not fit; and what to write instead.
  //   Cancelled - a signal asks this process to end.
  static absl::StatusOr<GatheredTasks> Gather(const NodeTasks& tasks,
                                              const Environment& environment, Duration patience);

  // `HLAUNCH_TASKS=...` for the environment of the agent, which inherits each task's stdout and
  // stderr, as does what it executes.
  std::string ForAgent() const;
  // The descriptors that the keeper has to keep.
  std::vector<int> links() const;
  // The same for a process that is not the one which says the end.
  void Leave() { links_.clear(); }
  // Tells the tasks how the job has ended.
  void SayEnd(int exit_code);

 private:
  absl::Status TakeAll(const NodeTasks& tasks, const Environment& environment, Duration patience);

  absl::Status Take(const NodeTasks& tasks, int local, UniqueFd socket, const TaskMessage& agent);

  std::vector<UniqueFd> links_;
  std::vector<UniqueFd> streams_;  // Of tasks 1, 2 …: stdout and stderr of each.
  bool apart_ = false;             // Not all have the same CPUs.
};

// Has the workers of `spec` run in their tasks: where they run, write, and how many CPUs each has,
// as `for_agent`, the value of what GatheredTasks::ForAgent made, has it. Pure but for the user's
// number.
void UseTasks(const NodeTasks& tasks, const std::string& for_agent, WorkerSpec& spec);

}  // namespace hlaunch
