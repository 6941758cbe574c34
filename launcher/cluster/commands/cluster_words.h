// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The command lines of `hlaunch ps`, `nodes` and `top`, and the words that name a job of the
// cluster. All functions are pure.

namespace hlaunch {

// A value.
struct ClusterCommand {
  std::optional<std::string> text_to_print;  // The text of --help; then nothing else is set.
  std::string job;                           // As typed; empty: none was named.
  bool all = false;                          // Show the jobs of all users.
  bool ended = false;                        // Show ended jobs, too.
  bool json = false;
};

// Errors:
//   InvalidArgument - one line that names the option, the value and the way out.
//
// Requires: the command line begins with the command's word.
absl::StatusOr<ClusterCommand> ParsePsOptions(int argc, const char* const* argv);
absl::StatusOr<ClusterCommand> ParseNodesOptions(int argc, const char* const* argv);
absl::StatusOr<ClusterCommand> ParseTopOptions(int argc, const char* const* argv);

// Returns the number of the job that `word` names: "17", or "hlaunch-17" as the job's own nodes
// call it. Unset: `word` has neither form.
std::optional<uint64_t> JobNumber(absl::string_view word);

}  // namespace hlaunch
