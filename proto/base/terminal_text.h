// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns `text` with everything that a terminal would obey, hide or reorder shown as \u001b or
// \u202e: control characters (C0 and C1), marks and overrides of direction, zero-width characters
// and line separators. Bytes that are no UTF-8 are shown as \xff. Tabs stay. A line end stays if
// the next line is indented; so no stranger's text can look like a line of its own. Valid JSON
// stays the same JSON. Pure.
std::string TerminalText(absl::string_view text);

// The same for a text of many lines: all line ends stay.
std::string TerminalLines(absl::string_view text);

}  // namespace hlaunch
