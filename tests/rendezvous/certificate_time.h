// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>

namespace hlaunch {

// The time at which tests of certificates and of what hosts join with take place: 2027-01-15.
inline constexpr std::time_t kNow = 1800000000;

}  // namespace hlaunch
