// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hlaunch {

// The simple commands in the text of a shell, each as its words without quotes, in order. Nothing
// is expanded, and comments are left out. It is a guess for people's usual lines, not a parser of
// the shell's language. At most `most` commands. Pure.
std::vector<std::vector<std::string>> CommandsIn(absl::string_view text, size_t most);

}  // namespace hlaunch
