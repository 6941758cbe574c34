// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hlaunch {

// The parsed command line of `hlaunch token`. A value.
struct TokenOptions {
  std::optional<std::string> text_to_print;  // --help: nothing else is set.
  std::string file;                          // Where to keep the token. Empty: the user's own file.
  bool renew = false;                        // Replace an existing token.
  bool print = false;                        // Print a new token and keep none.
  std::string job_id;                        // Print a token for this job only. Empty: no.
  bool for_page = false;                     // Print the password for status pages.
  std::string token_file;                    // The token that these two are made from.

  // Whether the output is derived from an existing token.
  bool derives() const { return !job_id.empty() || for_page; }
};

// Parses the command line of `hlaunch token`. Pure.
//
// Errors: InvalidArgument - one line that names the word.
absl::StatusOr<TokenOptions> ParseTokenOptions(int argc, const char* const* argv);

// Writes `token` and a newline to a new file of mode 0600, as WriteWholeFile does. Makes missing
// folders, with mode 0700. Replaces an old file only if `replace` is true.
//
// Errors:
//   AlreadyExists - the file exists, and `replace` is false.
//   InvalidArgument - the file cannot be written; the message names it and says why.
absl::Status WriteTokenFile(const std::string& path, const std::string& token, bool replace);

// Runs `hlaunch token` without --for-job and --for-page: makes or prints a token. Returns the exit
// code.
int MakeToken(int argc, char** argv);

}  // namespace hlaunch
