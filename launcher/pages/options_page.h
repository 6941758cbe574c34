// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// A command beside `hlaunch`, and what its --help prints.
struct CommandHelp {
  std::string command;
  std::string help;
};

// The page of options of the manual in Markdown: a table for each group of OptionTable(), with what
// torchrun and mpirun have in its place, and the help of `commands` as it is. Pure.
std::string OptionsPage(const std::vector<CommandHelp>& commands);

}  // namespace hlaunch
