// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/types/span.h"
#include "launcher/cli/options/option_table.h"

namespace hlaunch {

// Returns what --help prints: every row of the option table in its group, wrapped to 80 columns.
// `program` is the name under which the program was called. Pure.
std::string HelpText(const std::string& program);

// Returns one or more lines for each row, under the headings of the groups, as in --help. Pure.
std::string DescribeOptions(absl::Span<const OptionRow> table);

}  // namespace hlaunch
