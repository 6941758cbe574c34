// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/detached/log_line.h"

namespace hlaunch {

// The lines of one node's log, made of the text of answers. Parts of a long line are joined, so
// that lines of several nodes can follow each other; a line without an end in sight goes in pieces.
//
// Belongs to one thread. Pure.
class NodeLines {
 public:
  // `text` has whole lines of the log.
  std::vector<LogLine> Take(absl::string_view text);

  // What waits for a part that never came.
  std::vector<LogLine> Rest();

 private:
  std::array<std::optional<LogLine>, 2> open_;  // Of stdout and stderr.
};

}  // namespace hlaunch
