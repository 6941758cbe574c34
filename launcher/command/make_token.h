// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlaunch {

// What `hlaunch token` is asked. A value.
struct TokenOptions {
  std::optional<std::string> text_to_print;  // Set by --help: nothing else is done.
  std::string file;                          // Empty: the user's own.
  bool renew = false;                        // Replaces a token that is there.
  bool print = false;                        // Prints a new token and keeps none.
  std::string job_id;                        // Prints a token for this job alone; empty: no.
  bool for_page = false;                     // Prints what a status page asks for.
  std::string token_file;                    // Of the token that either is made from.

  // Whether it is made from a token that is there.
  bool derives() const { return !job_id.empty() || for_page; }
};

// Reads the words of `hlaunch token`. Pure.
//
// Errors: InvalidArgument - one line that names the word.
absl::StatusOr<TokenOptions> ParseTokenOptions(int argc, const char* const* argv);

// Writes `token` and a line end to a new file of mode 0600, whole or not at all; folders that are
// missing are made, of mode 0700. An old file is replaced only if `replace`.
//
// Errors: the messages name the file and say why.
//   AlreadyExists - there is one, and `replace` is false.
//   InvalidArgument - it cannot be written.
absl::Status WriteTokenFile(const std::string& path, const std::string& token, bool replace);

// `hlaunch token`: makes the user's token; returns the exit code.
int MakeToken(int argc, char** argv);

}  // namespace hlaunch
