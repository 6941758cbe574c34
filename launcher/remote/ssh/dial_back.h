// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// The result of DialBack. A value.
struct Dialled {
  std::string place;  // The HOST:PORT that was reached; empty if none was.
  std::string why;    // If none was reached: each place with its reason, in one line.
};

// Connects to `places`, each a HOST:PORT with a literal address. The attempts begin 250 ms apart,
// and the first that succeeds ends the others. Sends nothing. Blocks for at most `patience`.
Dialled DialBack(const std::vector<std::string>& places, Duration patience);

// Returns `candidates` in the order in which to try them. `ssh_connection` is the variable
// SSH_CONNECTION: the address from which this host was reached comes first. Pure.
std::vector<std::string> OrderCandidates(const std::vector<std::string>& candidates,
                                         const std::string& ssh_connection);

}  // namespace hlaunch
