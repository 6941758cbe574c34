// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "launcher/cli/mpirun/mpirun_line.h"

namespace hlaunch {

// The options of a line, up to its program. A value.
struct ReadLine {
  MpirunLine line;
  size_t used = 0;          // The number of words read; the program and its arguments follow.
  bool wants_help = false;  // The line asks for help; nothing else of it was read.
};

// Reads the options. If `by_that_name`, it is a line of mpirun; else one of hlaunch, whose other
// words are passed on unchanged. Pure.
//
// Errors:
//   InvalidArgument - one line that names the word and how to fix it.
absl::StatusOr<ReadLine> ReadMpirunLine(absl::Span<const std::string> words, bool by_that_name);

}  // namespace hlaunch
