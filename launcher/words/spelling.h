// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns the word of `known` that the user most likely meant: it begins with `typed`, or differs
// in few letters. Empty if no word is near.
std::string NearestSpelling(absl::string_view typed, const std::vector<std::string>& known);

}  // namespace hlaunch
