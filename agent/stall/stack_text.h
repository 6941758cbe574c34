// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// What the stacks of a process say, as py-spy, gdb and Python's faulthandler print them. Pure: text
// that a program may have had a hand in.

namespace hlaunch {

// The main thread of a process. A value.
struct StackSummary {
  std::vector<std::string> frames;  // One line each, the innermost first; empty: none was found.
  // The same as a traceback of Python's, the innermost last; empty: no Python was seen.
  std::string traceback;
  // Where it waits for other workers: the frame that says so; empty: nothing says that it does.
  std::string waits_in;
};

StackSummary SummarizeStacks(absl::string_view text);

}  // namespace hlaunch
