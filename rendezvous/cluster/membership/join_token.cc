// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/cluster/membership/join_token.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr char kPrefix[] = "hlj1.";  // A new form gets a new number.
constexpr size_t kIdBytes = 8;
constexpr size_t kSecretBytes = 24;
constexpr size_t kOpaqueLetters = 43;  // Of 32 bytes in base64url.
constexpr size_t kPinDigits = 32;

absl::Status NotWhole() {
  return absl::InvalidArgumentError(
      "that is not a whole join token; the head makes one by: hlaunch cluster token");
}

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

JoinToken MakeJoinToken(absl::string_view pin) {
  std::array<char, kIdBytes + kSecretBytes> bytes{};
  HLAUNCH_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == kIdBytes + kSecretBytes);
  return {absl::BytesToHexString({bytes.data(), kIdBytes}),
          absl::BytesToHexString({bytes.data() + kIdBytes, kSecretBytes}), std::string(pin)};
}

absl::StatusOr<JoinToken> ReadJoinToken(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kPrefix) || text.size() != kOpaqueLetters + 1 + kPinDigits ||
      text[kOpaqueLetters] != '.') {
    return NotWhole();
  }
  const absl::string_view pin = text.substr(kOpaqueLetters + 1);
  std::string bytes;
  if (!IsLowerHex(pin) || !absl::WebSafeBase64Unescape(text.substr(0, kOpaqueLetters), &bytes) ||
      bytes.size() != kIdBytes + kSecretBytes) {
    return NotWhole();
  }
  const absl::string_view both = bytes;
  JoinToken read = {absl::BytesToHexString(both.substr(0, kIdBytes)),
                    absl::BytesToHexString(both.substr(kIdBytes)), std::string(pin)};
  // A token has only one text, though base64 has letters whose last bits are unused.
  if (TextOf(read) != absl::StrCat(kPrefix, text)) return NotWhole();
  return read;
}

std::string TextOf(const JoinToken& token) {
  std::string opaque =
      absl::WebSafeBase64Escape(absl::HexStringToBytes(absl::StrCat(token.id, token.secret)));
  while (!opaque.empty() && opaque.back() == '=') opaque.pop_back();
  return absl::StrCat(kPrefix, opaque, ".", token.pin);
}

std::string HashOfSecret(absl::string_view secret) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  if (EVP_Digest(secret.data(), secret.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1) {
    return "";
  }
  return absl::BytesToHexString({reinterpret_cast<const char*>(hash.data()), size});
}

}  // namespace hlaunch
