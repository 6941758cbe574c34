// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/spec/token.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"
#include "proto/base/user_files.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/net/trust/token_text.h"

namespace hlaunch {
namespace {

constexpr size_t kMostFileBytes = 64 << 10;  // What is longer is no token.

// The error messages never show any part of the token.
absl::StatusOr<std::string> CheckToken(const std::string& content, const std::string& source) {
  const std::string token(absl::StripAsciiWhitespace(content));
  const absl::Status checked = CheckTokenText(token);
  if (checked.ok()) return token;
  return absl::InvalidArgumentError(absl::StrCat(source, ": ", checked.message()));
}

absl::Status TakeFile(const std::string& path, const ReadTokenFileFn& read_token_file,
                      Token& token) {
  HLAUNCH_ASSIGN_OR_RETURN(const TokenFile found, read_token_file(path));
  HLAUNCH_ASSIGN_OR_RETURN(token.secret,
                           CheckToken(found.content, absl::StrCat("token file ", path)));
  if (found.others_can_read) {
    token.warnings.push_back(
        absl::StrCat("token file ", path, " can be read by other users; run: chmod 600 ", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path) {
  const UniqueFd file = OpenToRead(path);
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    const absl::StatusCode code =
        errno == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument;
    return absl::Status(
        code, absl::StrCat("cannot read the token file ", path, ": ", std::strerror(errno)));
  }
  absl::StatusOr<std::string> content = ReadOpened(file, path, kMostFileBytes);
  if (!content.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the token file ", path, ": ", content.status().message()));
  }
  TokenFile token;
  token.content = *std::move(content);
  // The group of another owner's file may read it: in this way a cluster gives a secret to this
  // user.
  const mode_t others = status.st_uid == ::geteuid() ? S_IRGRP | S_IROTH : S_IROTH;
  token.others_can_read = (status.st_mode & others) != 0;
  return token;
}

std::string OwnTokenFile(const Environment& environment) {
  const std::string config = environment.Get("XDG_CONFIG_HOME");
  if (absl::StartsWith(config, "/")) return absl::StrCat(config, "/hlaunch/token");
  const std::string home = environment.Get("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.config/hlaunch/token");
}

absl::StatusOr<Token> FindToken(const std::string& option, const Environment& environment,
                                const ReadTokenFileFn& read_token_file) {
  Token token;
  token.file = !option.empty() ? option : environment.Get(kEnvTokenFile);
  if (token.file == kNoTokenFile) return Token();
  if (!token.file.empty()) {
    const absl::Status taken = TakeFile(token.file, read_token_file, token);
    if (!taken.ok()) return absl::InvalidArgumentError(taken.message());
    return token;
  }
  if (const std::string value = environment.Get(kEnvToken); !value.empty()) {
    HLAUNCH_ASSIGN_OR_RETURN(token.secret, CheckToken(value, kEnvToken));
    return token;
  }
  if (const std::string own = OwnTokenFile(environment); !own.empty()) {
    const absl::Status taken = TakeFile(own, read_token_file, token);
    if (!taken.ok() && !absl::IsNotFound(taken)) return taken;
  }
  return token;
}

}  // namespace hlaunch
