// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "proto/base/clock.h"

namespace hlaunch {

// Which of several places could be reached. A value.
struct Dialled {
  std::string place;  // HOST:PORT; empty: none.
  std::string why;    // If none: each with its reason, in one line.
};

// Connects to `places`, HOST:PORT with a literal each: one after the other begins, 250 ms apart,
// and the first that is taken ends it. Says nothing to it. Blocks until `patience` is over at most.
Dialled DialBack(const std::vector<std::string>& places, Duration patience);

// `candidates` in the order in which to try them, where `ssh_connection` is the variable
// SSH_CONNECTION: the address that this host was reached from is the best. Pure.
std::vector<std::string> OrderCandidates(const std::vector<std::string>& candidates,
                                         const std::string& ssh_connection);

}  // namespace hlaunch
