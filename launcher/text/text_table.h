// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

// Text for the output of the smaller commands. Pure.

namespace hlaunch {

// Returns how many columns of a terminal `text` takes, approximately: one for each character.
size_t ColumnsOf(absl::string_view text);

// Cuts `text` to `columns`. If something is cut off, the last column is `mark`, one character.
std::string CutToColumns(absl::string_view text, size_t columns, absl::string_view mark);

// Formats `rows` as a table whose columns are as wide as their longest cells. The first row is the
// heading. Cells are made safe for a terminal.
std::string TextTable(std::vector<std::vector<std::string>> rows);

// Returns one JSON value, indented, with a newline. Bytes that are not UTF-8 are replaced, so this
// never throws.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace hlaunch
