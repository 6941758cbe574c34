// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"

// What the smaller commands print. Pure.

namespace hlaunch {

// Rows as columns that are as wide as their longest cell; the first row is the heading. Text of
// hosts is made safe for a terminal.
std::string TextTable(std::vector<std::vector<std::string>> rows);

// One JSON value, indented, with a newline. What is not UTF-8 is replaced, so nothing throws.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace hlaunch
