// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Keys and certificates as OpenSSL has them. For this room and cluster_wire alone, and their tests.

namespace hlaunch {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;

// What OpenSSL says of its latest failure, which is forgotten then.
absl::Status OpenSslRefused(absl::string_view what);

// A new key of P-256; null if OpenSSL refuses.
Key NewKey();

// What a certificate says of its subject. The dates as OpenSSL takes them: "20000101000000Z".
struct CertificateText {
  std::string common_name;
  std::string usage;
  std::string name;                                      // A DNS name. Empty: it is an authority.
  std::string extended_usage = "serverAuth,clientAuth";  // Not of an authority.
  std::string not_before = "20000101000000Z";
  std::string not_after = "99991231235959Z";
  std::string uri = "";  // Another name; empty: none.
};

// `issuer` is null for a certificate that signs itself. Null if OpenSSL refuses.
Certificate Sign(EVP_PKEY* subject, const CertificateText& text, X509* issuer, EVP_PKEY* signer);

// In PEM; empty if OpenSSL refuses.
std::string PemOf(X509* certificate);
std::string PemOf(EVP_PKEY* key);

// In DER; empty if OpenSSL refuses. Of a key, the public half.
std::string DerOf(X509* certificate);
std::string DerOfPublic(EVP_PKEY* key);

// What `der` holds, and nothing else; null if it does not.
Certificate CertificateOfDer(absl::string_view der);
Key PublicKeyOfDer(absl::string_view der);

// The first certificate, or the key, in `pem`; null if there is none. No pass phrase is asked for.
Certificate CertificateIn(absl::string_view pem);
Key KeyIn(absl::string_view pem);

}  // namespace hlaunch
