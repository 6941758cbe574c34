// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

namespace hlaunch {

// The answer to a lookup. A value.
struct FoundHost {
  std::vector<std::string> literals;  // As in address.h, in the resolver's order; empty: not found.
  int error = 0;                      // getaddrinfo's error if nothing was found.
  std::string why;                    // The same in words.
};

}  // namespace hlaunch
