// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

// Reads the stacks of a process, as py-spy, gdb and Python's faulthandler print them. Pure: a
// program may have influenced the text.

namespace hlaunch {

// The main thread of a process. A value.
struct StackSummary {
  std::vector<std::string> frames;  // One line each, the innermost first; empty if none was found.
  // The same as a Python traceback, the innermost last; empty if there are no Python frames.
  std::string traceback;
  // The frame that shows that it waits for other workers; empty if no frame shows that.
  std::string waits_in;
};

StackSummary SummarizeStacks(absl::string_view text);

}  // namespace hlaunch
