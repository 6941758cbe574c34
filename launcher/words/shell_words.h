// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hlaunch {

// Divides words at blanks; quotes of both kinds keep blanks, and nothing else means anything. Pure.
//
// Errors:
//   InvalidArgument - a quote is open.
absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text);

// `word` so that a POSIX shell, and SplitWords, read it as one word. Pure.
std::string ShellQuote(absl::string_view word);

// What these make `words` of. Pure.
std::string JoinWords(absl::Span<const std::string> words);

}  // namespace hlaunch
