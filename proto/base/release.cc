// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/release.h"

#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace hlaunch {
namespace {

using absl::string_view;

struct Release {
  int major = 0, minor = 0;
  string_view text;  // "0.3.0"
};

// Returns the "0.3.0" of "0.3.0+4e92d20".
string_view NumberOf(string_view text) {
  size_t size = 0;
  while (size < text.size() && (absl::ascii_isdigit(text[size]) || text[size] == '.')) ++size;
  return text.substr(0, size);
}

std::optional<Release> ReadRelease(string_view text) {
  Release read;
  read.text = NumberOf(text);
  const std::vector<string_view> parts = absl::StrSplit(read.text, '.');
  if (parts.size() < 2 || parts.size() > 3 || !absl::SimpleAtoi(parts[0], &read.major) ||
      !absl::SimpleAtoi(parts[1], &read.minor)) {
    return std::nullopt;
  }
  return read;
}

}  // namespace

const char kRelease[] = HLAUNCH_RELEASE;

std::string WhyReleaseIsTooFar(string_view theirs, string_view own_name, string_view own) {
  const std::optional<Release> a = ReadRelease(theirs), b = ReadRelease(own);
  if (!a || !b) return "";
  if (a->major == b->major && std::abs(a->minor - b->minor) <= 1) return "";
  return absl::StrCat("has hlaunch ", a->text, ", ", own_name, " has ", b->text,
                      ": they work together if they are at most one minor release apart; update "
                      "the older one");
}

}  // namespace hlaunch
