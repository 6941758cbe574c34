// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hlaunch {

// Splits `text` into words at blanks. Single and double quotes keep blanks; no other character is
// special. Pure.
//
// Errors:
//   InvalidArgument - a quote is not closed.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text);

// Quotes `word` so that a POSIX shell and SplitWords read it as one word. Pure.
std::string ShellQuote(absl::string_view word);

// Returns a line that a POSIX shell and SplitWords split into `words`. Pure.
std::string JoinWords(absl::Span<const std::string> words);

}  // namespace hlaunch
