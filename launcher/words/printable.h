// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Text of a worker or another host, made safe for a terminal: at most the last `max_lines` lines
// that are not blank at the end, without escape sequences and control characters, the rest as
// TerminalText shows it, of a progress bar's line only the last state, each about 400 bytes long.
std::vector<std::string> PrintableLines(absl::string_view text, size_t max_lines);

// The first line of it, as above.
std::string PrintableLine(absl::string_view text);

}  // namespace hlaunch
