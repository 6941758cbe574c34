// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/text/environment.h"

namespace hlaunch {

// The content of a secret's file.
struct TokenFile {
  std::string content;
  bool others_can_read = false;  // Others may read it, or the group of a file of this user.
};

// Reads the file at `path`, at most kMaxTokenBytes + 1 bytes of it.
//
// Errors: the messages name the file and say why.
//   NotFound - there is no such file.
//   InvalidArgument - the file cannot be read.
using ReadTokenFileFn = std::function<absl::StatusOr<TokenFile>(const std::string& path)>;

// The implementation for real files.
absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path);

// The secret that all nodes of a job share, and where it was found.
struct Token {
  std::string secret;  // Empty: none.
  // The file of --token-file or HLAUNCH_TOKEN_FILE. Empty: the secret is from HLAUNCH_TOKEN or the
  // user's own file, or there is none.
  std::string file;
  std::vector<std::string> warnings;  // One line each.
};

// Returns where `hlaunch token` keeps the user's own token: ~/.config/hlaunch/token, by the rules
// of the XDG base directories. Empty if the user has no home directory.
std::string OwnTokenFile(const Environment& environment);

// As the name of a token file, this word means that no token is used.
inline constexpr char kNoTokenFile[] = "none";

// Takes the token from `file` (the value of --token-file), else HLAUNCH_TOKEN_FILE, else
// HLAUNCH_TOKEN, else the user's own file.
//
// Errors:
//   InvalidArgument - the token cannot be read, or is not a valid token; see CheckTokenText.
absl::StatusOr<Token> FindToken(const std::string& file, const Environment& environment,
                                const ReadTokenFileFn& read_token_file);

}  // namespace hlaunch
