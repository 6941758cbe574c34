// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include "agent/health/run_checks.h"

namespace hlaunch {

// Runs `hlaunch check`, from its command line to its exit code.
//
// Requires: the command line begins with `check`.
int CheckNode(int argc, char** argv);

// Runs the checks in a process that can be killed, prints their results, and returns the exit code.
int CheckThisNode(CheckPlan plan, bool json);

}  // namespace hlaunch
