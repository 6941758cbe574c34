// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/words/environment.h"

namespace hlaunch {

// A secret's file as found.
struct TokenFile {
  std::string content;
  bool others_can_read = false;  // The world may read it, or the group of this user's own file.
};

// Reads the file at `path`, a few bytes of it at most.
//
// Errors: the messages name it and say why.
//   NotFound - there is none.
//   InvalidArgument - it cannot be read.
using ReadTokenFileFn = std::function<absl::StatusOr<TokenFile>(const std::string& path)>;

// The real one.
absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path);

// The secret that all nodes of a job share, and where it was found.
struct Token {
  std::string secret;  // Empty: none.
  // Where it was found; empty: in HLAUNCH_TOKEN, in the user's own file, or there is none.
  std::string file;
  std::vector<std::string> warnings;  // One line each.
};

// Where `hlaunch token` keeps the user's own token: ~/.config/hlaunch/token, by the rules of the
// XDG base directories. Empty: the user has no home directory.
std::string OwnTokenFile(const Environment& environment);

// "none" for a file's name says that there is to be no token.
inline constexpr char kNoTokenFile[] = "none";

// From `file` (of --token-file), else HLAUNCH_TOKEN_FILE, else HLAUNCH_TOKEN, else the user's own
// file.
//
// Errors:
//   InvalidArgument - it cannot be had, or is none; see CheckTokenText.
absl::StatusOr<Token> FindToken(const std::string& file, const Environment& environment,
                                const ReadTokenFileFn& read_token_file);

}  // namespace hlaunch
