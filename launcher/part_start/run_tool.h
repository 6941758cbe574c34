// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// What a program of the system said and how it ended. A value.
struct ToolAnswer {
  std::string text;    // Of its stdout, at most 64 KiB.
  int exit_code = -1;  // -1: it could not be run, was killed, or took too long.
};

// Runs `argv`, which is sought in PATH, with no input, and kills it after `patience`. Blocks: for a
// child of the daemon that has one thread and no loop; see ToolRun for the loop.
ToolAnswer RunTool(const std::vector<std::string>& argv, Duration patience);

}  // namespace hlaunch
