// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/job/token.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxTokenBytes = 1024;  // As rendezvous/grpc/grpc_transport.cc.
constexpr char kTokenFileVariable[] = "HLAUNCH_TOKEN_FILE";

// It travels as a gRPC header, hence the restriction. Messages never show any of it.
absl::StatusOr<std::string> CheckToken(const std::string& content, const std::string& source) {
  const std::string token(absl::StripAsciiWhitespace(content));
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat(source, " holds no token"));
  if (token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": a token has at most ", kMaxTokenBytes, " bytes"));
  }
  if (!std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": a token is one line of printable ASCII without spaces"));
  }
  return token;
}

}  // namespace

absl::StatusOr<TokenFile> ReadTokenFile(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  TokenFile token;
  token.content.resize(kMaxTokenBytes + 1);
  size_t length = 0;
  ssize_t got = file.valid() && ::fstat(file.get(), &status) == 0 ? 1 : -1;
  while (got > 0 && length < token.content.size()) {
    got = ::read(file.get(), &token.content[length], token.content.size() - length);
    if (got > 0) length += static_cast<size_t>(got);
  }
  if (got < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the token file ", path, ": ", std::strerror(errno)));
  }
  token.content.resize(length);
  token.others_can_read = (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
  return token;
}

absl::StatusOr<Token> FindToken(const std::string& option, const Environment& environment,
                                const ReadTokenFileFn& read_token_file) {
  Token token;
  token.file = !option.empty() ? option : environment.Get(kTokenFileVariable);
  if (token.file.empty()) {
    const std::string value = environment.Get(kTokenVariable);
    if (value.empty()) return token;
    HLAUNCH_ASSIGN_OR_RETURN(token.secret, CheckToken(value, kTokenVariable));
    return token;
  }
  HLAUNCH_ASSIGN_OR_RETURN(const TokenFile found, read_token_file(token.file));
  HLAUNCH_ASSIGN_OR_RETURN(token.secret,
                           CheckToken(found.content, absl::StrCat("token file ", token.file)));
  if (found.others_can_read) {
    token.warnings.push_back(absl::StrCat(
        "token file ", token.file, " can be read by other users; run: chmod 600 ", token.file));
  }
  return token;
}

}  // namespace hlaunch
