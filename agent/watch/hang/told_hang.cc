// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/told_hang.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "agent/watch/hang/json_words.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxLines = 64;
constexpr size_t kMaxReasons = 1024;

std::string Packed(const ToldHang& hang) {
  const std::vector<std::string> lines = absl::StrSplit(hang.text, '\n');
  Json reasons = Json::array();
  for (const auto& [rank, reason] : hang.reasons) reasons.push_back({rank, reason});
  const Json json = {{"lines", lines}, {"reasons", std::move(reasons)}};
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace

std::string ToText(ToldHang hang, size_t max_bytes) {
  std::string text = Packed(hang);
  while (text.size() > max_bytes && !hang.reasons.empty()) {
    const size_t keep = hang.reasons.size() / 2;  // One that fails is enough for a new round.
    hang.reasons.erase(std::next(hang.reasons.begin(), static_cast<ptrdiff_t>(keep)),
                       hang.reasons.end());
    text = Packed(hang);
  }
  while (text.size() > max_bytes && !hang.text.empty()) {
    hang.text.resize(hang.text.size() / 2);
    text = Packed(hang);
  }
  return text;
}

std::optional<ToldHang> ParseToldHang(absl::string_view text) {
  const Json json = ParseJson(text);
  const Json& lines = At(json, "lines");
  const Json& reasons = At(json, "reasons");
  if (!lines.is_array() || !reasons.is_array()) return std::nullopt;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) words.push_back(WordOf(lines[i]));
  ToldHang hang{absl::StrJoin(words, "\n"), {}};
  for (size_t i = 0; i < std::min(reasons.size(), kMaxReasons); ++i) {
    if (!reasons[i].is_array() || reasons[i].size() != 2) continue;
    hang.reasons[static_cast<Rank>(NumberOf(reasons[i][0]))] = WordOf(reasons[i][1]);
  }
  return hang;
}

}  // namespace hlaunch
