// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace hlaunch {

// What may be written to a descriptor besides plain text. A value.
struct ConsoleStyle {
  bool terminal = false;  // A person reads it, and lines can be erased.
  bool colour = false;
};

// `no_color` and `term` are the variables of those names, null if unset: https://no-color.org.
// Pure.
ConsoleStyle DecideConsoleStyle(bool is_terminal, const char* no_color, const char* term);
// Decides for `fd` and our own environment.
ConsoleStyle ConsoleStyleOf(int fd);

// The worker that wrote a line. A value.
struct LineOrigin {
  std::string role;
  std::string host;
  int local_rank = 0;
  int rank = 0;
};

// The prefix of a worker's lines: `pattern` with ${role_name}, ${hostname}, ${local_rank} and
// ${rank} replaced, as Python's Template.safe_substitute does. FillPrefix replaces what differs
// from line to line. Pure.
std::string LinePrefix(absl::string_view pattern, const LineOrigin& origin);

// True if `prefix` contains the time of a line, and so differs for each line.
bool HasTime(absl::string_view prefix);

// `prefix` with ${stream} and ${time} replaced by these. Pure.
std::string FillPrefix(absl::string_view prefix, absl::string_view stream, absl::string_view time);

// "2026-11-24T08:06:48.123Z". Pure.
std::string TimeText(int64_t wall_ms);

// `prefix` in a colour that depends on `rank`. Pure.
std::string Coloured(absl::string_view prefix, int rank);

}  // namespace hlaunch
