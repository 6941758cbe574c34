// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// The commands by which hlaunch runs the jobs of programs that start torch's agent in Python: `run`
// for one program, `adopt` for a Python environment.

namespace hlaunch {

// The parsed command line of `hlaunch run` or `hlaunch adopt`.
struct AdoptOptions {
  std::optional<std::string> text_to_print;  // Instead of anything else.
  // Of `run`: the program and its arguments. Of `adopt`: what its Python side is told.
  std::vector<std::string> words;
};

// Parses `hlaunch run …`. Pure.
//
// Errors:
//   InvalidArgument - one line that names the word and the way out.
absl::StatusOr<AdoptOptions> ParseRunOptions(int argc, const char* const* argv);

// Parses `hlaunch adopt …`. Pure.
//
// Errors:
//   InvalidArgument - one line that names the word and the way out.
absl::StatusOr<AdoptOptions> ParseAdoptOptions(int argc, const char* const* argv);

// Carries out `hlaunch run`: becomes the program. Returns only if that fails, or after help, with
// the exit code. Call before other threads start.
int RunAdopted(int argc, char** argv);

// Carries out `hlaunch adopt`: becomes the environment's Python. Returns only if that fails, or
// after help, with the exit code.
int Adopt(int argc, char** argv);

}  // namespace hlaunch
