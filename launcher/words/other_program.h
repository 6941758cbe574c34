// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// A further program of a job, as --also says it: "-n 1 -x A=1 --wdir /data ./server --port 9".

namespace hlaunch {

// A value.
struct OtherProgramWish {
  int ranks = 0;                       // From 1 on.
  std::vector<std::string> variables;  // NAME=value each, for these ranks alone.
  std::string directory;               // Where they run; empty: where all do.
  std::vector<std::string> command;    // Script or program, then its arguments; not empty.
};

inline constexpr int kMostRanksOfProgram = 1 << 20;

// What `text` says; and the reverse. Pure.
//
// Errors:
//   InvalidArgument - what was expected.
absl::StatusOr<OtherProgramWish> ParseOtherProgram(absl::string_view text);
std::string OtherProgramText(const OtherProgramWish& wish);

// The ranks of all of `programs` together.
int RanksOf(absl::Span<const OtherProgramWish> programs);

}  // namespace hlaunch
