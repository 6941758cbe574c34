// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/trust/trust.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status_macros.h"
#include "rendezvous/trust/certificate.h"
#include "rendezvous/trust/token_text.h"

namespace hlaunch {
namespace {

// One label for each use; a new way of deriving takes a new one.
constexpr char kSalt[] = "hlaunch token v1";
constexpr char kAuthorityLabel[] = "authority p-256";
constexpr char kNameLabel[] = "server name";
constexpr char kFingerprintLabel[] = "fingerprint";
constexpr size_t kNameBytes = 16;
constexpr size_t kFingerprintBytes = 4;
// 128 bits more than the order of P-256 has, so that the remainder has next to no bias.
constexpr size_t kScalarBytes = 48;
constexpr size_t kPointBytes = 65;  // Uncompressed.

using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_clear_free>>;
using NumberContext = std::unique_ptr<BN_CTX, Freed<BN_CTX_free>>;
using Group = std::unique_ptr<EC_GROUP, Freed<EC_GROUP_free>>;
using Point = std::unique_ptr<EC_POINT, Freed<EC_POINT_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;

// `size` bytes for one use of the token, by HKDF-SHA256; empty if OpenSSL refuses.
std::string Derive(absl::string_view token, absl::string_view label, size_t size) {
  const KeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  std::string out(size, '\0');
  const auto bytes = [](absl::string_view text) {
    return reinterpret_cast<const unsigned char*>(text.data());
  };
  const absl::string_view salt = kSalt;
  const bool derived =
      context != nullptr && EVP_PKEY_derive_init(context.get()) > 0 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) > 0 &&
      EVP_PKEY_CTX_set1_hkdf_salt(context.get(), bytes(salt), static_cast<int>(salt.size())) > 0 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), bytes(token), static_cast<int>(token.size())) > 0 &&
      EVP_PKEY_CTX_add1_hkdf_info(context.get(), bytes(label), static_cast<int>(label.size())) >
          0 &&
      EVP_PKEY_derive(context.get(), reinterpret_cast<unsigned char*>(out.data()), &size) > 0;
  return derived ? out : "";
}

// The key of P-256 whose private number is that of `bytes` brought into 1 … order - 1 (FIPS 186-5,
// A.2.1). Null if OpenSSL refuses.
Key KeyOfBytes(absl::string_view bytes) {
  const Group group(EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  const NumberContext work(BN_CTX_secure_new());
  if (group == nullptr || work == nullptr || bytes.empty()) return nullptr;
  const Number d(BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()),
                           static_cast<int>(bytes.size()), nullptr));
  const Number last(BN_dup(EC_GROUP_get0_order(group.get())));
  const Point q(EC_POINT_new(group.get()));
  std::array<unsigned char, kPointBytes> point{};
  if (d == nullptr || last == nullptr || q == nullptr || !BN_sub_word(last.get(), 1) ||
      !BN_mod(d.get(), d.get(), last.get(), work.get()) || !BN_add_word(d.get(), 1)) {
    return nullptr;
  }
  BN_set_flags(d.get(), BN_FLG_CONSTTIME);
  if (!EC_POINT_mul(group.get(), q.get(), d.get(), nullptr, nullptr, work.get()) ||
      EC_POINT_point2oct(group.get(), q.get(), POINT_CONVERSION_UNCOMPRESSED, point.data(),
                         point.size(), work.get()) != point.size()) {
    return nullptr;
  }
  const Builder builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      !OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME,
                                       SN_X9_62_prime256v1, 0) ||
      !OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, d.get()) ||
      !OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                        point.size())) {
    return nullptr;
  }
  const Params params(OSSL_PARAM_BLD_to_param(builder.get()));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) <= 0 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, params.get()) <= 0) {
    return nullptr;
  }
  return Key(key);
}

}  // namespace

struct Trust::Identity {
  std::string server_name;
  std::string fingerprint;
  std::string authority;
  std::string certificate;
  std::string key;
  CertificateFiles files;
  std::string mark;  // Of the files when they were read.
};

Trust::Trust(std::shared_ptr<const Identity> identity) : identity_(std::move(identity)) {}

absl::StatusOr<Trust> Trust::OfToken(absl::string_view token) {
  if (token.empty()) return Trust();
  HLAUNCH_RETURN_IF_ERROR(CheckTokenText(token));
  Identity made;
  const std::string name = Derive(token, kNameLabel, kNameBytes);
  if (name.empty()) return OpenSslRefused("derive keys (HKDF with SHA-256)");
  made.server_name = absl::StrCat(absl::BytesToHexString(name), ".hlaunch");
  made.fingerprint = absl::BytesToHexString(Derive(token, kFingerprintLabel, kFingerprintBytes));
  std::string scalar = Derive(token, kAuthorityLabel, kScalarBytes);
  const Key signer = KeyOfBytes(scalar);
  OPENSSL_cleanse(scalar.data(), scalar.size());
  if (signer == nullptr) return OpenSslRefused("make a key of P-256");
  const Certificate authority = Sign(signer.get(), {"hlaunch job", "critical,keyCertSign", ""},
                                     /*issuer=*/nullptr, signer.get());
  const Key own = NewKey();
  if (authority == nullptr || own == nullptr) return OpenSslRefused("make a certificate");
  const Certificate certificate =
      Sign(own.get(), {"hlaunch", "critical,digitalSignature", made.server_name}, authority.get(),
           signer.get());
  if (certificate == nullptr) return OpenSslRefused("sign a certificate");
  made.authority = PemOf(authority.get());
  made.certificate = PemOf(certificate.get());
  made.key = PemOf(own.get());
  if (made.authority.empty() || made.certificate.empty() || made.key.empty()) {
    return OpenSslRefused("write a certificate as PEM");
  }
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

absl::StatusOr<Trust> Trust::OfFiles(const CertificateFiles& files) {
  Identity made;
  made.mark = MarkOf(files);  // Before they are read: what changes meanwhile is read again.
  HLAUNCH_ASSIGN_OR_RETURN(Certificates read, ReadCertificates(files, std::time(nullptr)));
  if (!read.warning.empty()) LogWarning(read.warning);
  made.authority = std::move(read.authority);
  made.certificate = std::move(read.certificate);
  made.key = std::move(read.key);
  made.files = files;
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

absl::StatusOr<Trust> Trust::Of(absl::string_view token, const CertificateFiles& files) {
  return files.none() ? OfToken(token) : OfFiles(files);
}

Trust Trust::Renewed() const {
  if (none() || files().none()) return *this;
  std::string mark = MarkOf(files());
  if (mark == identity_->mark) return *this;
  absl::StatusOr<Trust> renewed = OfFiles(files());
  if (renewed.ok()) return *std::move(renewed);
  LogWarning(absl::StrCat(renewed.status().message(), "; going on with what was there before"));
  Identity kept = *identity_;
  kept.mark = std::move(mark);  // Said once for each change.
  return Trust(std::make_shared<const Identity>(std::move(kept)));
}

const CertificateFiles& Trust::files() const { return identity_->files; }
const std::string& Trust::server_name() const { return identity_->server_name; }
const std::string& Trust::fingerprint() const { return identity_->fingerprint; }
const std::string& Trust::authority() const { return identity_->authority; }
const std::string& Trust::certificate() const { return identity_->certificate; }
const std::string& Trust::key() const { return identity_->key; }

}  // namespace hlaunch
