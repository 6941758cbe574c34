// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/sealed_text.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/derived_keys.h"

namespace hlaunch {
namespace {

constexpr char kMagic[] = "hlaunch-sealed 1\n";  // A nonce, a tag and the text follow.
constexpr char kRecordsLabel[] = "records";
constexpr size_t kRecordKeyBytes = 32;
constexpr size_t kGcmNonceBytes = 12;
constexpr size_t kGcmTagBytes = 16;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, Freed<EVP_CIPHER_CTX_free>>;

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
int Size(absl::string_view text) { return static_cast<int>(text.size()); }

// Begins to seal (1) or to open (0) the text called `name`. Returns null if OpenSSL refuses.
Cipher Begin(int seals, absl::string_view key, absl::string_view nonce, absl::string_view name) {
  Cipher cipher(EVP_CIPHER_CTX_new());
  int size = 0;
  const bool begun = cipher != nullptr && key.size() == kRecordKeyBytes &&
                     EVP_CipherInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, Bytes(key),
                                       Bytes(nonce), seals) > 0 &&
                     EVP_CipherUpdate(cipher.get(), nullptr, &size, Bytes(name), Size(name)) > 0;
  return begun ? std::move(cipher) : nullptr;
}

// Seals or opens `text`. Returns false if OpenSSL refuses or the tag does not match.
bool Run(EVP_CIPHER_CTX* cipher, absl::string_view text, std::string* out) {
  out->resize(text.size());
  int size = 0, rest = 0;
  return EVP_CipherUpdate(cipher, Bytes(*out), &size, Bytes(text), Size(text)) > 0 &&
         EVP_CipherFinal_ex(cipher, Bytes(*out) + size, &rest) > 0;
}

}  // namespace

std::string RecordKeyOf(absl::string_view token) {
  return DeriveBytes(token, kRecordsLabel, kRecordKeyBytes);
}

bool IsSealed(absl::string_view text) { return absl::StartsWith(text, kMagic); }

std::string SealText(absl::string_view key, absl::string_view name, absl::string_view plain) {
  std::string nonce(kGcmNonceBytes, '\0'), tag(kGcmTagBytes, '\0'), sealed;
  if (RAND_bytes(Bytes(nonce), static_cast<int>(kGcmNonceBytes)) != 1) return "";
  const Cipher cipher = Begin(1, key, nonce, name);
  if (cipher == nullptr || !Run(cipher.get(), plain, &sealed) ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, static_cast<int>(kGcmTagBytes),
                          tag.data()) <= 0) {
    return "";
  }
  return kMagic + nonce + tag + sealed;
}

absl::StatusOr<std::string> OpenText(absl::string_view key, absl::string_view name,
                                     absl::string_view sealed) {
  if (!absl::ConsumePrefix(&sealed, kMagic) || sealed.size() < kGcmNonceBytes + kGcmTagBytes) {
    return absl::DataLossError("it is not sealed by a token");
  }
  std::string tag(sealed.substr(kGcmNonceBytes, kGcmTagBytes)), plain;
  const Cipher cipher = Begin(0, key, sealed.substr(0, kGcmNonceBytes), name);
  if (cipher == nullptr ||
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, static_cast<int>(kGcmTagBytes),
                          tag.data()) <= 0 ||
      !Run(cipher.get(), sealed.substr(kGcmNonceBytes + kGcmTagBytes), &plain)) {
    return absl::DataLossError("it was sealed by another token, or was changed");
  }
  return plain;
}

}  // namespace hlaunch
