// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The one of `known` that `typed` most likely meant: it begins so, or differs by few letters.
// Empty if nothing is near.
std::string NearestSpelling(absl::string_view typed, const std::vector<std::string>& known);

}  // namespace hlaunch
