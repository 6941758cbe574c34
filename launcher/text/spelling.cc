// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/spelling.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "launcher/text/printable.h"

namespace hlaunch {
namespace {

constexpr size_t kLongestTypo = 64;  // Bounds the work on nonsense.
constexpr size_t kShortestPrefix = 4;

// Returns how many letters of `typed` may be wrong: most short words are near to some other one.
size_t MostWrong(absl::string_view typed) {
  const size_t dashes = std::min(typed.find_first_not_of('-'), typed.size());
  const size_t letters = typed.size() - dashes;
  if (letters <= 4) return letters <= 2 ? 0 : 1;
  return std::max<size_t>(2, typed.size() / 4);
}

// Levenshtein's distance, one row of the table at a time.
size_t EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// In UTF-8: hyphen, hyphen that does not break, figure dash, en dash, em dash, bar, minus, small
// and wide hyphen.
constexpr absl::string_view kDashes[] = {"\xe2\x80\x90", "\xe2\x80\x91", "\xe2\x80\x92",
                                         "\xe2\x80\x93", "\xe2\x80\x94", "\xe2\x80\x95",
                                         "\xe2\x88\x92", "\xef\xb9\xa3", "\xef\xbc\x8d"};

std::string WithHyphens(absl::string_view word) {
  std::vector<std::pair<absl::string_view, absl::string_view>> pairs;
  for (const absl::string_view dash : kDashes) pairs.emplace_back(dash, "-");
  return absl::StrReplaceAll(word, pairs);
}

}  // namespace

std::string NearestSpelling(absl::string_view typed, const std::vector<std::string>& known) {
  if (typed.size() > kLongestTypo) return "";
  std::string nearest;
  size_t least = MostWrong(typed) + 1;
  for (const std::string& word : known) {
    if (typed.size() >= kShortestPrefix && absl::StartsWith(word, typed)) return word;
    if (const size_t distance = EditDistance(typed, word); distance < least) {
      least = distance;
      nearest = word;
    }
  }
  return nearest;
}

absl::Status CheckDashes(absl::string_view word) {
  const absl::string_view option = word.substr(0, word.find('='));  // A value may have any dash.
  const std::string hyphens = WithHyphens(option);
  if (hyphens == option || !absl::StartsWith(hyphens, "-")) return absl::OkStatus();
  const std::string name = hyphens.substr(std::min(hyphens.find_first_not_of('-'), hyphens.size()));
  if (name.empty()) return absl::OkStatus();
  // An editor makes one dash of two hyphens as well. Only short options have one letter.
  const bool is_short = name.size() == 1 || name == "np";
  return absl::InvalidArgumentError(absl::StrCat(
      PrintableLine(option), " has a dash that is no hyphen, as copied text may have: ", "type ",
      is_short ? "-" : "--", name, PrintableLine(word.substr(option.size()))));
}

}  // namespace hlaunch
