// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hlaunch {

// A part that has ended. A value.
struct EndedPart {
  uint64_t job = 0;
  uid_t uid = 0;
};

// The jobs whose parts go, so that `most` are left: each time the oldest one of the user who has
// the most parts, so nobody's many jobs take another's logs away. `ended`: the oldest first. Pure.
std::vector<uint64_t> PartsToRemove(const std::vector<EndedPart>& ended, size_t most);

}  // namespace hlaunch
