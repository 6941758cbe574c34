// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// A command besides `hlaunch`, and what its --help prints.
struct CommandHelp {
  std::string command;
  std::string help;
};

// Returns the manual's page of options in Markdown: a table for each group of OptionTable(), with
// the matching options of torchrun and mpirun, and the help of `commands` unchanged. Pure.
std::string OptionsPage(const std::vector<CommandHelp>& commands);

}  // namespace hlaunch
