// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/shell_words.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {
namespace {

bool IsPlain(char c) { return absl::ascii_isalnum(c) || absl::StrContains("-_./:=,+@%", c); }

}  // namespace

std::string ShellQuote(absl::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\"'\"'"}}), "'");
}

absl::StatusOr<std::vector<std::string>> SplitWords(absl::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && absl::ascii_isspace(c)) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (quote != '\0' && c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      words.back().push_back(c);
    }
  }
  if (quote == '\0') return words;
  return absl::InvalidArgumentError(absl::StrCat("a quote (", std::string(1, quote), ") is open"));
}

std::string JoinWords(absl::Span<const std::string> words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    absl::StrAppend(out, ShellQuote(word));
  });
}

}  // namespace hlaunch
