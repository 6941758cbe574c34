// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// `text` with all that a terminal would obey, hide or set in another order shown as \u001b or
// \u202e: control characters (C0 and C1), marks and overrides of direction, zero-width characters,
// separators of lines; and bytes that are no UTF-8 as \xff. Tabs stay; so do ends of lines where
// the next one is indented, so that no stranger's text can look like a line of its own. Valid JSON
// stays the same JSON. Pure.
std::string TerminalText(absl::string_view text);

// The same for a text of many lines, all of whose ends stay.
std::string TerminalLines(absl::string_view text);

}  // namespace hlaunch
