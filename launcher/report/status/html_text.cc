// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/report/status/html_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";

// The replacement of `c`; null if `c` stays.
const char* EntityOf(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\n':
    case '\t':
      return nullptr;
    default:
      return absl::ascii_iscntrl(static_cast<unsigned char>(c)) ? kReplacement : nullptr;
  }
}

}  // namespace

std::string HtmlText(absl::string_view text) {
  std::string html;
  html.reserve(text.size());
  for (const char c : text) {
    const char* entity = EntityOf(c);
    if (entity == nullptr) {
      html += c;
    } else {
      html += entity;
    }
  }
  return html;
}

std::string ToUrlPart(absl::string_view text) {
  std::string url;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' ||
                       c == '_' || c == '~';
    if (plain) {
      url += c;
    } else {
      absl::StrAppend(&url, "%", absl::AsciiStrToUpper(absl::BytesToHexString({&c, 1})));
    }
  }
  return url;
}

std::string FromUrlPart(absl::string_view text) {
  std::string plain;
  while (!text.empty()) {
    if (text[0] != '%') {
      plain += text[0];
      text.remove_prefix(1);
      continue;
    }
    const bool hex = text.size() >= 3 &&
                     absl::ascii_isxdigit(static_cast<unsigned char>(text[1])) &&
                     absl::ascii_isxdigit(static_cast<unsigned char>(text[2]));
    if (!hex) return "";
    plain += absl::HexStringToBytes(text.substr(1, 2));
    text.remove_prefix(3);
  }
  return plain;
}

}  // namespace hlaunch
