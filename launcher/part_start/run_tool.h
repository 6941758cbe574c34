// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// What a system program printed and how it ended. A value.
struct ToolAnswer {
  std::string text;    // Its stdout, at most 64 KiB.
  int exit_code = -1;  // -1: the program could not be run, was killed, or took too long.
};

// Runs `argv`, whose program is looked up in PATH, with no input. Kills it after `patience`.
// Blocks, so it is for a child of the daemon, which has one thread and no loop. In the loop use
// ToolRun.
ToolAnswer RunTool(const std::vector<std::string>& argv, Duration patience);

}  // namespace hlaunch
