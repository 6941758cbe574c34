// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/types/span.h"
#include "launcher/options/option_table.h"

namespace hlaunch {

// What --help prints: every row of the option table in its group, wrapped to 80 columns.
// `program` is what it was called as. Pure.
std::string HelpText(const std::string& program);

// One line or more for each row, under the headings of their groups, as in --help. Pure.
std::string DescribeOptions(absl::Span<const OptionRow> table);

}  // namespace hlaunch
