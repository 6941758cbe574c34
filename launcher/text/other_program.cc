// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/other_program.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "launcher/text/parse_int.h"
#include "launcher/text/printable.h"
#include "launcher/text/shell_words.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

using absl::InvalidArgumentError;
using absl::string_view;

std::string Quoted(string_view text) { return absl::StrCat("'", PrintableLine(text), "'"); }

// Returns whether `text` is NAME=value.
bool IsVariable(string_view text) {
  const string_view name = text.substr(0, text.find('='));
  return name.size() < text.size() && !name.empty() && !absl::ascii_isdigit(name[0]) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

absl::Status TakeOption(string_view name, const std::string& value, OtherProgramWish& wish) {
  if (name == "-n") {
    if (ParseInt(value, 1, kMostRanksOfProgram, &wish.ranks)) return absl::OkStatus();
    return InvalidArgumentError(absl::StrCat("-n ", Quoted(value), ": expected a number of ranks"));
  }
  if (name == "-x") {
    wish.variables.push_back(value);
    if (IsVariable(value)) return absl::OkStatus();
    return InvalidArgumentError(absl::StrCat("-x ", Quoted(value), ": expected NAME=VALUE"));
  }
  if (name == "--wdir") {
    wish.directory = value;
    if (!value.empty()) return absl::OkStatus();
    return InvalidArgumentError("--wdir: the name of the folder is missing");
  }
  return InvalidArgumentError(
      absl::StrCat(Quoted(name), ": before the program only -n N, -x NAME=VALUE and --wdir DIR"));
}

}  // namespace

absl::StatusOr<OtherProgramWish> ParseOtherProgram(string_view text) {
  HLAUNCH_ASSIGN_OR_RETURN(std::vector<std::string> words, SplitWords(text));
  OtherProgramWish wish;
  size_t next = 0;
  while (next < words.size() && absl::StartsWith(words[next], "-")) {
    if (words[next] == "--") {
      ++next;
      break;
    }
    if (next + 1 == words.size()) {
      return InvalidArgumentError(absl::StrCat(Quoted(words[next]), " needs a value"));
    }
    HLAUNCH_RETURN_IF_ERROR(TakeOption(words[next], words[next + 1], wish));
    next += 2;
  }
  wish.command.assign(std::make_move_iterator(words.begin() + static_cast<std::ptrdiff_t>(next)),
                      std::make_move_iterator(words.end()));
  const bool whole = wish.ranks > 0 && !wish.command.empty() && !wish.command[0].empty();
  if (whole) return wish;
  return InvalidArgumentError("expected '-n N PROGRAM [ARGUMENT...]'");
}

std::string OtherProgramText(const OtherProgramWish& wish) {
  std::vector<std::string> words = {"-n", absl::StrCat(wish.ranks)};
  for (const std::string& variable : wish.variables) words.insert(words.end(), {"-x", variable});
  if (!wish.directory.empty()) words.insert(words.end(), {"--wdir", wish.directory});
  if (absl::StartsWith(wish.command.front(), "-")) words.emplace_back("--");
  words.insert(words.end(), wish.command.begin(), wish.command.end());
  return JoinWords(words);
}

int RanksOf(absl::Span<const OtherProgramWish> programs) {
  int ranks = 0;
  for (const OtherProgramWish& program : programs) {
    ranks = std::min(ranks + program.ranks, kMostRanksOfProgram);
  }
  return ranks;
}

}  // namespace hlaunch
