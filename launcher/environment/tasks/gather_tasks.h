// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/workers/worker/worker_spec.h"
#include "launcher/environment/scheduler/node_tasks.h"
#include "launcher/environment/tasks/task_message.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Task 0's links to the other tasks of its node. While it holds the links, the tasks wait for
// workers. If the links close without an end message, the tasks end what they run. A movable value.
class GatheredTasks {
 public:
  GatheredTasks() = default;

  // Waits until all other tasks of the node have come, at most `patience`.
  //
  // Errors:
  //   InvalidArgument - tells which task did not come or what does not fit, and what to write
  //       instead.
  //   Cancelled - a signal asks this process to end.
  static absl::StatusOr<GatheredTasks> Gather(const NodeTasks& tasks,
                                              const Environment& environment, Duration patience);

  // `HLAUNCH_TASKS=...` for the environment of the agent. The agent, and every program that it
  // executes, inherits each task's stdout and stderr.
  std::string ForAgent() const;
  // The descriptors that the keeper must keep open.
  std::vector<int> links() const;
  // Closes the links in a process that will not tell the end.
  void Leave() { links_.clear(); }
  // Tells the tasks how the job has ended.
  void SayEnd(int exit_code);

 private:
  absl::Status TakeAll(const NodeTasks& tasks, const Environment& environment, Duration patience);

  absl::Status Take(const NodeTasks& tasks, int local, UniqueFd socket, const TaskMessage& agent);

  std::vector<UniqueFd> links_;
  std::vector<UniqueFd> streams_;  // stdout and stderr of each of tasks 1, 2 …
  bool apart_ = false;             // Not all tasks have the same CPUs.
};

// Makes the workers of `spec` run in their tasks: sets where they run and write, and whether each
// has CPUs of its own. `for_agent` is the value of the variable that GatheredTasks::ForAgent made.
// Pure but for the user's number.
void UseTasks(const NodeTasks& tasks, const std::string& for_agent, WorkerSpec& spec);

}  // namespace hlaunch
