// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// Returns the word of `known` that the user most likely meant: it begins with `typed`, or differs
// in few letters. Empty if no word is near.
std::string NearestSpelling(absl::string_view typed, const std::vector<std::string>& known);

// Refuses a word that was to be an option but has other dashes than hyphens, as text that is copied
// from a web page or a word processor: "–nnodes", "—standalone", "--nproc–per–node". Pure.
//
// Errors:
//   InvalidArgument - one line that names the word and says what to type.
absl::Status CheckDashes(absl::string_view word);

}  // namespace hlaunch
