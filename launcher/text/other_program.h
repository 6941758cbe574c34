// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// A further program of a job, as in the value of --also: "-n 1 -x A=1 --wdir /data ./server --port
// 9".

namespace hlaunch {

// What a value of --also asks for. A value.
struct OtherProgramWish {
  int ranks = 0;                       // At least 1.
  std::vector<std::string> variables;  // Each is NAME=value, for these ranks only.
  std::string directory;               // Where these ranks run. Empty: where the other ranks run.
  std::vector<std::string> command;    // Script or program, then its arguments; not empty.
};

inline constexpr int kMostRanksOfProgram = 1 << 20;

// Convert between the text of --also and the wish. Pure.
//
// Errors:
//   InvalidArgument - says what was expected.
absl::StatusOr<OtherProgramWish> ParseOtherProgram(absl::string_view text);
std::string OtherProgramText(const OtherProgramWish& wish);

// Returns the number of ranks of all `programs` together, at most kMostRanksOfProgram.
int RanksOf(absl::Span<const OtherProgramWish> programs);

}  // namespace hlaunch
