// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Makes text from a worker or another host safe for a terminal. Drops blank lines at the end and
// returns at most the last `max_lines` lines. Each line has at most about 400 bytes and no escape
// sequences; control characters are replaced. Of a progress bar only its last state remains.
// TerminalText decides how all other characters look.
std::vector<std::string> PrintableLines(absl::string_view text, size_t max_lines);

// Returns the first line of `text` that is not blank, in the same form.
std::string PrintableLine(absl::string_view text);

}  // namespace hlaunch
