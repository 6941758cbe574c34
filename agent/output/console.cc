// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "agent/output/console.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hlaunch {
namespace {

// SGR codes, without red, which is for errors.
constexpr std::array<int, 10> kColours = {36, 32, 33, 35, 34, 96, 92, 93, 95, 94};

constexpr absl::string_view kStream = "${stream}";
constexpr absl::string_view kTime = "${time}";

// The name at the start of `text`, as Python's Template reads it; empty if there is none.
absl::string_view NameAt(absl::string_view text) {
  size_t n = 0;
  while (n < text.size() && (absl::ascii_isalpha(static_cast<unsigned char>(text[n])) ||
                             text[n] == '_' || (n > 0 && absl::ascii_isdigit(text[n])))) {
    ++n;
  }
  return text.substr(0, n);
}

// The value of torchrun's macro `name`; unset if there is no such macro.
std::optional<std::string> MacroValue(absl::string_view name, const LineOrigin& origin) {
  if (name == "role_name") return origin.role;
  if (name == "hostname") return origin.host;
  if (name == "local_rank") return absl::StrCat(origin.local_rank);
  if (name == "rank") return absl::StrCat(origin.rank);
  return std::nullopt;
}

}  // namespace

ConsoleStyle DecideConsoleStyle(bool is_terminal, const char* no_color, const char* term) {
  ConsoleStyle style;
  style.terminal = is_terminal && term != nullptr && absl::string_view(term) != "dumb";
  style.colour = style.terminal && (no_color == nullptr || *no_color == '\0');
  return style;
}

ConsoleStyle ConsoleStyleOf(int fd) {
  return DecideConsoleStyle(::isatty(fd) == 1, std::getenv("NO_COLOR"), std::getenv("TERM"));
}

std::string LinePrefix(absl::string_view pattern, const LineOrigin& origin) {
  std::string prefix;
  while (!pattern.empty()) {
    const size_t dollar = std::min(pattern.find('$'), pattern.size());
    absl::StrAppend(&prefix, pattern.substr(0, dollar));
    pattern.remove_prefix(dollar);
    if (pattern.empty()) break;
    const bool braced = pattern.substr(0, 2) == "${";
    const absl::string_view name = NameAt(pattern.substr(braced ? 2 : 1));
    const size_t size = name.size() + (braced ? 3 : 1);
    const bool whole = !braced || pattern.substr(size - 1, 1) == "}";
    const std::optional<std::string> value = whole ? MacroValue(name, origin) : std::nullopt;
    if (pattern.substr(0, 2) == "$$") {
      prefix += '$';
      pattern.remove_prefix(2);
    } else if (value.has_value()) {
      prefix += *value;
      pattern.remove_prefix(size);
    } else {
      prefix += '$';
      pattern.remove_prefix(1);
    }
  }
  return prefix;
}

bool HasTime(absl::string_view prefix) { return absl::StrContains(prefix, kTime); }

std::string FillPrefix(absl::string_view prefix, absl::string_view stream, absl::string_view time) {
  return absl::StrReplaceAll(prefix, {{kStream, stream}, {kTime, time}});
}

std::string TimeText(int64_t wall_ms) {
  const std::time_t seconds = static_cast<std::time_t>(wall_ms / 1000);
  std::tm utc = {};
  ::gmtime_r(&seconds, &utc);
  char text[40];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return absl::StrCat(absl::string_view(text, size), ".",
                      absl::Dec(wall_ms % 1000, absl::kZeroPad3), "Z");
}

std::string Coloured(absl::string_view prefix, int rank) {
  const size_t colour = static_cast<size_t>(rank) % kColours.size();
  return absl::StrCat("\x1b[", kColours[colour], "m", prefix, "\x1b[0m");
}

}  // namespace hlaunch
