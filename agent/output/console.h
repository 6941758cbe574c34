// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
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

// The worker whose lines they are. A value.
struct LineOrigin {
  std::string role;
  std::string host;
  int local_rank = 0;
  int rank = 0;
};

// What stands before a worker's lines: `pattern` with ${role_name}, ${hostname}, ${local_rank} and
// ${rank} replaced as Python's Template.safe_substitute does; what differs from line to line is
// left to FillPrefix. Pure.
std::string LinePrefix(absl::string_view pattern, const LineOrigin& origin);

// Whether `prefix` says when a line came: then it is new for each.
bool HasTime(absl::string_view prefix);

// `prefix` with ${stream} and ${time} replaced by these. Pure.
std::string FillPrefix(absl::string_view prefix, absl::string_view stream, absl::string_view time);

// "2026-11-24T08:06:48.123Z". Pure.
std::string TimeText(int64_t wall_ms);

// `prefix` in a colour that depends on `rank`. Pure.
std::string Coloured(absl::string_view prefix, int rank);

}  // namespace hlaunch
