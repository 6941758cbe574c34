// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/terminal_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

// One character of UTF-8, or one byte that belongs to none.
struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool valid = false;
};

Character FirstOf(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = code < (bytes == 4 ? 0x10000U : bytes == 3 ? 0x800U : 0x80U);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {};
  return {code, bytes, true};
}

struct Range {
  uint32_t first, last;
};
// In ascending order. Unicode's categories Cc, Cf, Zl and Zp, as far as terminals act on them.
constexpr Range kHarmful[] = {{0x00, 0x1f},     {0x7f, 0x9f},      {0xad, 0xad},
                              {0x61c, 0x61c},   {0x180e, 0x180e},  {0x200b, 0x200f},
                              {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                              {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};

bool IsHarmful(uint32_t code) {
  const auto* range = std::find_if(std::begin(kHarmful), std::end(kHarmful),
                                   [code](const Range& one) { return code <= one.last; });
  return range != std::end(kHarmful) && code >= range->first;
}

void PutEscape(std::string* out, uint32_t code) {
  if (code > 0xffff) {  // As in JSON.
    PutEscape(out, 0xd800 + ((code - 0x10000) >> 10));
    PutEscape(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
  } else {
    absl::StrAppend(out, "\\u", absl::Hex(code, absl::kZeroPad4));
  }
}

std::string Escaped(absl::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = FirstOf(text);
    const bool line_goes_on = text.size() > 1 && text[1] == ' ';
    const bool kept = text[0] == '\t' || (text[0] == '\n' && (keeps_lines || line_goes_on));
    if (!next.valid) {
      absl::StrAppend(&out, "\\x", absl::Hex(static_cast<unsigned char>(text[0]), absl::kZeroPad2));
    } else if (!kept && IsHarmful(next.code)) {
      PutEscape(&out, next.code);
    } else {
      absl::StrAppend(&out, text.substr(0, next.bytes));
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

}  // namespace

std::string TerminalText(absl::string_view text) { return Escaped(text, /*keeps_lines=*/false); }
std::string TerminalLines(absl::string_view text) { return Escaped(text, /*keeps_lines=*/true); }

}  // namespace hlaunch
