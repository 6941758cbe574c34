// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// The first word of the command below.
inline constexpr char kStandInWord[] = "--in-task";

// `hlaunch --in-task ADDRESS PROGRAM ...`, which the agent starts in place of a worker. It asks the
// task at ADDRESS to start the worker with this process's environment, directory and descriptors,
// forwards the signals that it receives, and ends as the worker ends. If this process is killed,
// the task kills the worker.
int RunStandIn(int argc, char** argv);

}  // namespace hlaunch
