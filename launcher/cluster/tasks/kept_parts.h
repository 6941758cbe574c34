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

// Returns the jobs whose parts to remove so that `most` are left. It takes each time the oldest
// part of the user who has the most, so that one user's many jobs do not displace another user's
// logs. `ended` begins with the oldest. Pure.
std::vector<uint64_t> PartsToRemove(const std::vector<EndedPart>& ended, size_t most);

}  // namespace hlaunch
