// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What may be written to a descriptor besides text. A value.
struct ConsoleStyle {
  bool terminal = false;  // A person looks at it, and lines can be erased.
  bool colour = false;
};

// Of a terminal or none; `no_color` and `term` are the variables of that name, null if unset:
// https://no-color.org. Pure.
ConsoleStyle DecideConsoleStyle(bool is_terminal, const char* no_color, const char* term);
// Of `fd` and our own environment.
ConsoleStyle ConsoleStyleOf(int fd);

// What stands before a worker's lines: `pattern` with ${role_name}, ${local_rank} and ${rank}
// replaced as Python's Template.safe_substitute does. Pure.
std::string LinePrefix(absl::string_view pattern, absl::string_view role, int local_rank, int rank);

// `prefix` in a colour that depends on `rank`. Pure.
std::string Coloured(absl::string_view prefix, int rank);

}  // namespace hlaunch
