// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// What --help prints: every row of the option table in its group, wrapped to 80 columns. Pure.
std::string HelpText();

}  // namespace hlaunch
