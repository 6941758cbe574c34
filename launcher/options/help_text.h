// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

namespace hlaunch {

// What --help prints: every row of the option table in its group, wrapped to 80 columns.
// `program` is what it was called as. Pure.
std::string HelpText(const std::string& program);

}  // namespace hlaunch
