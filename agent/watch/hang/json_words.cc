// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/watch/hang/json_words.h"

#include <algorithm>

namespace hlaunch {
namespace {

constexpr size_t kMaxWordBytes = 400;
constexpr int kMaxDepth = 16;  // What torch or another agent writes uses 6.

// True if brackets nest so deeply that freeing the parsed value could use up the stack.
bool IsDeep(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '[' || text[i] == '{')) {
      if (++depth > kMaxDepth) return true;
    } else if (!quoted && (text[i] == ']' || text[i] == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Json ParseJson(absl::string_view text) {
  if (IsDeep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
}

const Json& At(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found != object.end() ? *found : kNone;
}

std::string WordOf(const Json& json) {
  if (!json.is_string()) return "";
  std::string word = json.get_ref<const std::string&>().substr(0, kMaxWordBytes);
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return word;
}

int64_t NumberOf(const Json& json) { return json.is_number_integer() ? json.get<int64_t>() : 0; }

}  // namespace hlaunch
