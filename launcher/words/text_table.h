// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

// What the smaller commands print. Pure.

namespace hlaunch {

// How many columns of a terminal a text takes, near enough: one for each character.
size_t ColumnsOf(absl::string_view text);

// As much of `text` as fits into `columns`, with `mark`, one character, at its end if that is not
// all.
std::string CutToColumns(absl::string_view text, size_t columns, absl::string_view mark);

// Rows as columns that are as wide as their longest cell; the first row is the heading. Text of
// hosts is made safe for a terminal.
std::string TextTable(std::vector<std::vector<std::string>> rows);

// One JSON value, indented, with a newline. What is not UTF-8 is replaced, so nothing throws.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace hlaunch
