// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "launcher/remote/detached/log_line.h"

namespace hlaunch {

// Makes the lines of one node's log from the text of answers. Joins the pieces of a long line, so
// that lines of several nodes can be mixed. A line that grows too long is returned in pieces.
//
// Belongs to one thread. Pure.
class NodeLines {
 public:
  // `text` consists of whole lines of the log file.
  std::vector<LogLine> Take(absl::string_view text);

  // Returns the lines whose last pieces never came.
  std::vector<LogLine> Rest();

 private:
  std::array<std::optional<LogLine>, 2> open_;  // Incomplete lines of stdout and stderr.
};

}  // namespace hlaunch
