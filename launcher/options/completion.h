// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// Scripts by which a shell completes the command line of `program`: options in both spellings,
// values where they are one of a few words, a file or a folder, and files from the script on.
// Made from the option table. Pure.
std::string BashCompletion(const std::string& program);
std::string ZshCompletion(const std::string& program);

}  // namespace hlaunch
