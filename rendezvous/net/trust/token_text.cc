// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/token_text.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr double kLeastBits = 128;
constexpr size_t kLeastDifferent = 8;  // "aaaa…" is long but not a secret.

constexpr char kHowToMakeOne[] = "; make one with: hlaunch token";

// Returns how many characters the token's author chose from, judged by the token's characters.
int AlphabetSize(absl::string_view token) {
  if (std::all_of(token.begin(), token.end(), absl::ascii_isdigit)) return 10;
  if (std::all_of(token.begin(), token.end(), absl::ascii_isxdigit)) return 16;
  return std::none_of(token.begin(), token.end(), absl::ascii_isupper) ? 36 : 64;
}

}  // namespace

absl::Status CheckTokenText(absl::string_view token) {
  if (token.empty()) return absl::InvalidArgumentError(absl::StrCat("it is empty", kHowToMakeOne));
  if (token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token has at most ", kMaxTokenBytes, " bytes", kHowToMakeOne));
  }
  if (!std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a token is one line of printable ASCII without spaces", kHowToMakeOne));
  }
  const double bits = static_cast<double>(token.size()) * std::log2(AlphabetSize(token));
  if (bits < kLeastBits || std::set<char>(token.begin(), token.end()).size() < kLeastDifferent) {
    return absl::InvalidArgumentError(
        absl::StrCat("the token is too easy to guess (128 random bits are needed)", kHowToMakeOne));
  }
  return absl::OkStatus();
}

std::string NewTokenText() {
  std::array<char, kTokenBytes> bytes{};
  HLAUNCH_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == kTokenBytes);
  std::string text = absl::WebSafeBase64Escape(absl::string_view(bytes.data(), bytes.size()));
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

}  // namespace hlaunch
