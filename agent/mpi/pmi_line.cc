// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/mpi/pmi_line.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// Where the value of `key` begins in `text`, whose tokens are divided by `divider`; npos: nowhere.
size_t ValueOf(absl::string_view text, absl::string_view key, char divider) {
  const std::string token = absl::StrCat(key, "=");
  for (size_t at = text.find(token); at != text.npos; at = text.find(token, at + 1)) {
    if (at == 0 || text[at - 1] == divider) return at + token.size();
  }
  return text.npos;
}

absl::Status Nonsense(absl::string_view line) {
  constexpr size_t kShown = 60;
  return absl::InvalidArgumentError(absl::StrCat("a line that is none of PMI-1's: '",
                                                 line.substr(0, kShown),
                                                 line.size() > kShown ? "…'" : "'"));
}

}  // namespace

std::optional<std::string> PmiRequest::Word(absl::string_view key) const {
  const char divider = block ? '\n' : ' ';
  absl::string_view text = arguments;
  for (const absl::string_view free : {"value", "message"}) {
    const size_t value = block ? text.npos : ValueOf(text, free, divider);
    if (value != text.npos) text = text.substr(0, value);
  }
  const size_t at = ValueOf(text, key, divider);
  if (at == text.npos) return std::nullopt;
  return std::string(text.substr(at, text.find(divider, at) - at));
}

std::optional<std::string> PmiRequest::Rest(absl::string_view key) const {
  const size_t at = ValueOf(arguments, key, ' ');
  if (at == absl::string_view::npos) return std::nullopt;
  return arguments.substr(at);
}

std::optional<int> PmiRequest::Number(absl::string_view key) const {
  int number = 0;
  const std::optional<std::string> word = Word(key);
  if (!word || !absl::SimpleAtoi(*word, &number)) return std::nullopt;
  return number;
}

absl::StatusOr<std::vector<PmiRequest>> PmiReader::Take(absl::string_view bytes) {
  std::vector<PmiRequest> requests;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const absl::string_view piece = bytes.substr(0, end);
    if (begun_.size() + piece.size() > kMaxPmiLine) {
      return absl::InvalidArgumentError(
          absl::StrCat("a line of PMI-1 that is longer than ", kMaxPmiLine, " bytes"));
    }
    absl::StrAppend(&begun_, piece);
    if (end == bytes.npos) break;
    bytes.remove_prefix(end + 1);
    HLAUNCH_ASSIGN_OR_RETURN(std::optional<PmiRequest> request, TakeLine(begun_));
    begun_.clear();
    if (request) requests.push_back(*std::move(request));
  }
  return requests;
}

absl::StatusOr<std::optional<PmiRequest>> PmiReader::TakeLine(absl::string_view line) {
  if (block_) {
    if (line == "endcmd") return std::exchange(block_, std::nullopt);
    if (block_->arguments.size() + line.size() + 1 > kMaxPmiBlock) {
      return absl::InvalidArgumentError(
          absl::StrCat("a block of PMI-1 that is longer than ", kMaxPmiBlock, " bytes"));
    }
    absl::StrAppend(&block_->arguments, block_->arguments.empty() ? "" : "\n", line);
    return std::nullopt;
  }
  absl::string_view rest = line;
  if (absl::ConsumePrefix(&rest, "mcmd=")) {
    if (rest.empty()) return Nonsense(line);
    block_ = PmiRequest{std::string(rest), "", true};
    return std::nullopt;
  }
  if (!absl::ConsumePrefix(&rest, "cmd=")) return Nonsense(line);
  const size_t blank = std::min(rest.find(' '), rest.size());
  if (blank == 0) return Nonsense(line);
  return PmiRequest{std::string(rest.substr(0, blank)),
                    std::string(absl::StripPrefix(rest.substr(blank), " ")), false};
}

}  // namespace hlaunch
