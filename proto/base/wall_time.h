// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

namespace hlaunch {

// `wall_ms` since 1970 as ISO 8601 in UTC: "2026-11-21T18:22:43.007Z". Pure.
std::string WallTime(int64_t wall_ms);

}  // namespace hlaunch
