// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// The variable that holds a token.
inline constexpr char kTokenVariable[] = "HLAUNCH_TOKEN";

// A secret's file as found.
struct TokenFile {
  std::string content;
  bool others_can_read = false;  // Group or world may read it.
};

// Reads the file at `path`, a few bytes of it at most.
//
// Errors: InvalidArgument - it cannot be read; the message names it and says why.
using ReadTokenFileFn = std::function<absl::StatusOr<TokenFile>(const std::string& path)>;

// The real one.
absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path);

// The secret that all nodes of a job share, and where it was found.
struct Token {
  std::string secret;                 // Empty: none.
  std::string file;                   // Empty: from HLAUNCH_TOKEN, or there is none.
  std::vector<std::string> warnings;  // One line each.
};

// From `file` (of --token-file), else HLAUNCH_TOKEN_FILE, else HLAUNCH_TOKEN.
//
// Errors:
//   InvalidArgument - it cannot be had, or is none.
absl::StatusOr<Token> FindToken(const std::string& file, const Environment& environment,
                                const ReadTokenFileFn& read_token_file);

}  // namespace hlaunch
