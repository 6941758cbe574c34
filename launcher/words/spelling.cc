// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/words/spelling.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"

namespace hlaunch {
namespace {

constexpr size_t kLongestTypo = 64;  // Bounds the work on nonsense.
constexpr size_t kShortestPrefix = 4;

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

}  // namespace

std::string NearestSpelling(absl::string_view typed, const std::vector<std::string>& known) {
  if (typed.size() > kLongestTypo) return "";
  std::string nearest;
  size_t least = std::max<size_t>(2, typed.size() / 4) + 1;
  for (const std::string& word : known) {
    if (typed.size() >= kShortestPrefix && absl::StartsWith(word, typed)) return word;
    if (const size_t distance = EditDistance(typed, word); distance < least) {
      least = distance;
      nearest = word;
    }
  }
  return nearest;
}

}  // namespace hlaunch
