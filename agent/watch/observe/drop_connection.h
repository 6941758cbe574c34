// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hlaunch {

// A connection to a server of this process: what counts when one has to be dropped. A value.
struct OpenConnection {
  std::string source;     // The address of the client.
  bool answered = false;  // The whole request has come, and the answer is on its way.
};

// Returns which of `open` (the oldest first, not empty) is dropped for a new connection. It is a
// connection of the source that has the most: the oldest whose request has not come, or else the
// oldest. So a client that opens many connections pushes out its own, not another host's probe.
// Pure.
size_t ConnectionToDrop(const std::vector<OpenConnection>& open);

}  // namespace hlaunch
