// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/trust/trust.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
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
// Whoever holds the token can make a new certificate, so an end would only be one more way to fail
// by a wrong clock.
constexpr char kNotBefore[] = "20000101000000Z";
constexpr char kNotAfter[] = "99991231235959Z";

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Freed<EVP_PKEY_CTX_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_clear_free>>;
using NumberContext = std::unique_ptr<BN_CTX, Freed<BN_CTX_free>>;
using Group = std::unique_ptr<EC_GROUP, Freed<EC_GROUP_free>>;
using Point = std::unique_ptr<EC_POINT, Freed<EC_POINT_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Freed<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Freed<OSSL_PARAM_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;

absl::Status Refused(absl::string_view what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what, ": ", text.data()));
}

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

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// What an authority's certificate says, or that of one who is both client and server.
struct CertificateText {
  const char* common_name;
  std::string usage;
  std::string name;  // Empty: it is an authority.
};

// `issuer` is null for a certificate that signs itself. Null if OpenSSL refuses.
Certificate Sign(EVP_PKEY* subject, const CertificateText& text, X509* issuer, EVP_PKEY* signer) {
  Certificate made(X509_new());
  uint64_t serial = 0;
  if (made == nullptr || RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1)
    return nullptr;
  X509* const certificate = made.get();
  X509* const authority = issuer == nullptr ? certificate : issuer;
  X509_NAME* const name = X509_get_subject_name(certificate);
  const bool signed_ =
      X509_set_version(certificate, X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), (serial >> 1) | 1) == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), kNotBefore) == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), kNotAfter) == 1 &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(text.common_name), -1, -1,
                                 0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(authority)) == 1 &&
      X509_set_pubkey(certificate, subject) == 1 &&
      AddExtension(certificate, authority, NID_basic_constraints,
                   text.name.empty() ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      AddExtension(certificate, authority, NID_key_usage, text.usage) &&
      AddExtension(certificate, authority, NID_subject_key_identifier, "hash") &&
      (text.name.empty() ||
       (AddExtension(certificate, authority, NID_authority_key_identifier, "keyid:always") &&
        AddExtension(certificate, authority, NID_ext_key_usage, "serverAuth,clientAuth") &&
        AddExtension(certificate, authority, NID_subject_alt_name,
                     absl::StrCat("DNS:", text.name)))) &&
      X509_sign(certificate, signer, EVP_sha256()) > 0;
  return signed_ ? std::move(made) : nullptr;
}

// What `write` writes in PEM.
template <typename Write>
std::string Pem(Write write) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (memory == nullptr || write(memory.get()) != 1) return "";
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

std::string PemOf(X509* certificate) {
  return Pem([certificate](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string PemOf(EVP_PKEY* key) {
  return Pem([key](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

}  // namespace

struct Trust::Identity {
  std::string server_name;
  std::string fingerprint;
  std::string authority;
  std::string certificate;
  std::string key;
};

Trust::Trust(std::shared_ptr<const Identity> identity) : identity_(std::move(identity)) {}

absl::StatusOr<Trust> Trust::OfToken(absl::string_view token) {
  if (token.empty()) return Trust();
  HLAUNCH_RETURN_IF_ERROR(CheckTokenText(token));
  Identity made;
  const std::string name = Derive(token, kNameLabel, kNameBytes);
  if (name.empty()) return Refused("derive keys (HKDF with SHA-256)");
  made.server_name = absl::StrCat(absl::BytesToHexString(name), ".hlaunch");
  made.fingerprint = absl::BytesToHexString(Derive(token, kFingerprintLabel, kFingerprintBytes));
  std::string scalar = Derive(token, kAuthorityLabel, kScalarBytes);
  const Key signer = KeyOfBytes(scalar);
  OPENSSL_cleanse(scalar.data(), scalar.size());
  if (signer == nullptr) return Refused("make a key of P-256");
  const Certificate authority = Sign(signer.get(), {"hlaunch job", "critical,keyCertSign", ""},
                                     /*issuer=*/nullptr, signer.get());
  const Key own(EVP_EC_gen(SN_X9_62_prime256v1));
  if (authority == nullptr || own == nullptr) return Refused("make a certificate");
  const Certificate certificate =
      Sign(own.get(), {"hlaunch", "critical,digitalSignature", made.server_name}, authority.get(),
           signer.get());
  if (certificate == nullptr) return Refused("sign a certificate");
  made.authority = PemOf(authority.get());
  made.certificate = PemOf(certificate.get());
  made.key = PemOf(own.get());
  if (made.authority.empty() || made.certificate.empty() || made.key.empty()) {
    return Refused("write a certificate as PEM");
  }
  return Trust(std::make_shared<const Identity>(std::move(made)));
}

const std::string& Trust::server_name() const { return identity_->server_name; }
const std::string& Trust::fingerprint() const { return identity_->fingerprint; }
const std::string& Trust::authority() const { return identity_->authority; }
const std::string& Trust::certificate() const { return identity_->certificate; }
const std::string& Trust::key() const { return identity_->key; }

}  // namespace hlaunch
