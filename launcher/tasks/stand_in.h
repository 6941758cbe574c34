// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

namespace hlaunch {

// The word of the command below.
inline constexpr char kStandInWord[] = "--in-task";

// `hlaunch --in-task ADDRESS PROGRAM ...`, which the agent starts in a worker's place: has the task
// at ADDRESS start the worker, with this process's environment, directory and descriptors, hands
// it the signals that come here, and ends as it ends. If this process is killed, the task kills
// the worker.
int RunStandIn(int argc, char** argv);

}  // namespace hlaunch
