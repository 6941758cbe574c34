// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// Return scripts with which a shell completes the command line of `program`: options in both
// spellings; values that are one of a few words, a file or a folder; and files from the script on.
// The scripts are made from the option table. Pure.
std::string BashCompletion(const std::string& program);
std::string ZshCompletion(const std::string& program);

}  // namespace hlaunch
