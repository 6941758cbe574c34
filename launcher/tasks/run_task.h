// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "launcher/cluster/node_tasks.h"
#include "launcher/words/environment.h"
#include "proto/base/clock.h"

namespace hlaunch {

// A task that is not its node's agent, from its start to its exit code: waits at most `patience`
// for task 0, then runs the worker that task 0's agent names, as often as it does, until the job
// is over. What the worker forked ends with it, and all of it ends with the agent.
//
// The exit code is that of the last worker, or 128 + its signal; the job's, where hlaunch ended
// the worker or never started one; kExitAgentLost, where task 0 was killed.
//
// Signals that a scheduler sends to all tasks are left to task 0, once it has come.
//
// Requires: tasks.local > 0; called before a second thread exists.
int RunTask(const NodeTasks& tasks, const Environment& environment, Duration patience);

}  // namespace hlaunch
