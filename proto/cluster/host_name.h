// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

namespace hlaunch {

inline constexpr size_t kMaxHostName = 253;

// Whether `name` can name a host of a cluster: lower case letters, digits, '-', '_' and '.', and
// the first is a letter or a digit. Files and certificates have such names, so nothing else is
// allowed. Pure.
bool IsClusterHostName(const std::string& name);

}  // namespace hlaunch
