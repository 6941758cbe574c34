// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

namespace hlaunch {

inline constexpr size_t kMaxHostName = 253;

// Whether `name` can be that of a host of a cluster: lower case letters, digits, '-', '_' and '.',
// none of the last three first. As files and certificates have it, so nothing else is let in. Pure.
bool IsClusterHostName(const std::string& name);

}  // namespace hlaunch
