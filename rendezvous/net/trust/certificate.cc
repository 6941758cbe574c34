// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/certificate.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Freed<BIO_free_all>>;

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// Returns what `write` writes in PEM.
template <typename Write>
std::string Pem(Write write) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (memory == nullptr || write(memory.get()) != 1) return "";
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

// Returns what `write` writes in DER.
template <typename Write>
std::string Der(Write write) {
  const int size = write(nullptr);
  if (size <= 0) return "";
  std::string der(static_cast<size_t>(size), '\0');
  auto at = reinterpret_cast<unsigned char*>(der.data());
  return write(&at) == size ? der : "";
}

}  // namespace

absl::Status OpenSslRefused(absl::string_view what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return absl::InternalError(absl::StrCat("OpenSSL cannot ", what, ": ", text.data()));
}

Key NewKey() { return Key(EVP_EC_gen(SN_X9_62_prime256v1)); }

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
      ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), text.not_before.c_str()) == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), text.not_after.c_str()) == 1 &&
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(text.common_name.c_str()),
                                 -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate, X509_get_subject_name(authority)) == 1 &&
      X509_set_pubkey(certificate, subject) == 1 &&
      AddExtension(certificate, authority, NID_basic_constraints,
                   text.name.empty() ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      AddExtension(certificate, authority, NID_key_usage, text.usage) &&
      AddExtension(certificate, authority, NID_subject_key_identifier, "hash") &&
      (text.name.empty() ||
       (AddExtension(certificate, authority, NID_authority_key_identifier, "keyid:always") &&
        AddExtension(certificate, authority, NID_ext_key_usage, text.extended_usage) &&
        AddExtension(
            certificate, authority, NID_subject_alt_name,
            absl::StrCat("DNS:", text.name, text.uri.empty() ? "" : ",URI:", text.uri)))) &&
      X509_sign(certificate, signer, EVP_sha256()) > 0;
  return signed_ ? std::move(made) : nullptr;
}

std::string PemOf(X509* certificate) {
  return Pem([certificate](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string PemOf(EVP_PKEY* key) {
  return Pem([key](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

std::string DerOf(X509* certificate) {
  return Der([certificate](unsigned char** out) { return i2d_X509(certificate, out); });
}

std::string DerOfPublic(EVP_PKEY* key) {
  return Der([key](unsigned char** out) { return i2d_PUBKEY(key, out); });
}

Certificate CertificateOfDer(absl::string_view der) {
  auto at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* const end = at + der.size();
  Certificate found(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  return at == end ? std::move(found) : nullptr;
}

Key PublicKeyOfDer(absl::string_view der) {
  auto at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* const end = at + der.size();
  Key found(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  return at == end ? std::move(found) : nullptr;
}

Certificate CertificateIn(absl::string_view pem) {
  const Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Certificate found(PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return found;
}

Key KeyIn(absl::string_view pem) {
  const auto no_phrase = [](char*, int, int, void*) { return -1; };
  const Memory memory(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Key found(PEM_read_bio_PrivateKey(memory.get(), nullptr, no_phrase, nullptr));
  ERR_clear_error();
  return found;
}

}  // namespace hlaunch
