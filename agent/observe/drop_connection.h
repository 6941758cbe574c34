// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hlaunch {

// A connection to a server of this process, as far as it matters to who must make room. A value.
struct OpenConnection {
  std::string source;     // The address it comes from.
  bool answered = false;  // Its request has come whole, and the answer is on its way.
};

// Which of `open`, the oldest first and not empty, makes room for the next: of the source that has
// most of them, the oldest whose request has not come, or else the oldest. So whoever opens many
// pushes out its own, not another host's probe. Pure.
size_t ConnectionToDrop(const std::vector<OpenConnection>& open);

}  // namespace hlaunch
