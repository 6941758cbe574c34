// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "launcher/environment/scheduler/node_tasks.h"
#include "launcher/text/environment.h"
#include "proto/base/clock.h"

namespace hlaunch {

// Runs a task that is not its node's agent, from its start to its exit code. Waits at most
// `patience` for task 0; of all that wait, task 1 says so after a while, and at the end why. Then
// runs a worker whenever task 0's agent asks for one, until the job is over. The processes that a
// worker forked end with the worker, and all of them end with the agent.
//
// The exit code is that of the last worker, or 128 + its signal. It is the job's if hlaunch ended
// the worker or never started one, and kExitAgentLost if task 0 was killed.
//
// Once task 0 has come, it handles the signals that a scheduler sends to all tasks.
//
// Requires: tasks.local > 0; called before a second thread exists.
int RunTask(const NodeTasks& tasks, const Environment& environment, Duration patience);

}  // namespace hlaunch
