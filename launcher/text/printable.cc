// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/printable.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/terminal_text.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxLineBytes = 400;
constexpr char kEscape = '\x1b';

// Returns the length of the escape sequence at the start of `text`: ESC [ … final byte, or ESC and
// one more byte.
size_t EscapeLength(absl::string_view text) {
  if (text.size() < 2 || text[1] != '[') return std::min<size_t>(text.size(), 2);
  size_t length = 2;
  while (length < text.size() && (text[length] < '@' || text[length] > '~')) ++length;
  return std::min(length + 1, text.size());
}

std::string Cleaned(absl::string_view line) {
  absl::ConsumeSuffix(&line, "\r");
  line = line.substr(line.rfind('\r') + 1);  // npos + 1 is 0.
  std::string clean;
  while (!line.empty()) {
    if (line[0] == kEscape) {
      line.remove_prefix(EscapeLength(line));
      continue;
    }
    const char c = line[0] == '\t' ? ' ' : line[0];
    clean += absl::ascii_iscntrl(c) ? '?' : c;
    line.remove_prefix(1);
  }
  if (clean.size() <= kMaxLineBytes) return TerminalText(clean);
  size_t end = kMaxLineBytes;
  while (end > 0 && (clean[end] & '\xc0') == '\x80') --end;  // Not within a UTF-8 character.
  return absl::StrCat(TerminalText(clean.substr(0, end)), "...");
}

}  // namespace

std::vector<std::string> PrintableLines(absl::string_view text, size_t max_lines) {
  std::vector<absl::string_view> raw =
      absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n');
  const size_t first = raw.size() > max_lines ? raw.size() - max_lines : 0;
  std::vector<std::string> lines;
  for (size_t i = first; i < raw.size(); ++i) lines.push_back(Cleaned(raw[i]));
  if (lines.size() == 1 && lines.front().empty()) lines.clear();
  return lines;
}

std::string PrintableLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  return Cleaned(text.substr(0, text.find('\n')));
}

}  // namespace hlaunch
