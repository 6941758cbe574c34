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

// OpenSSL's keys and certificates. Only this folder, cluster_wire and their tests may use this
// file.

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

// Returns an Internal error with the first message in OpenSSL's error queue, and clears the queue.
absl::Status OpenSslRefused(absl::string_view what);

// A new key of P-256; null if OpenSSL refuses.
Key NewKey();

// What a certificate says about its subject. Dates have OpenSSL's form: "20000101000000Z".
struct CertificateText {
  std::string common_name;
  std::string usage;
  std::string name;                                      // A DNS name; empty for an authority.
  std::string extended_usage = "serverAuth,clientAuth";  // Not used for an authority.
  std::string not_before = "20000101000000Z";
  std::string not_after = "99991231235959Z";
  std::string uri = "";  // A further name; empty if there is none.
};

// Makes a certificate. `issuer` is null if it signs itself. Returns null if OpenSSL refuses.
Certificate Sign(EVP_PKEY* subject, const CertificateText& text, X509* issuer, EVP_PKEY* signer);

// Return the PEM text; empty if OpenSSL refuses.
std::string PemOf(X509* certificate);
std::string PemOf(EVP_PKEY* key);

// Return the DER bytes of the certificate, or of the public half of the key; empty if OpenSSL
// refuses.
std::string DerOf(X509* certificate);
std::string DerOfPublic(EVP_PKEY* key);

// Return the object if `der` holds it and nothing else; null otherwise.
Certificate CertificateOfDer(absl::string_view der);
Key PublicKeyOfDer(absl::string_view der);

// Return the first certificate, or the key, in `pem`; null if there is none. They ask for no pass
// phrase.
Certificate CertificateIn(absl::string_view pem);
Key KeyIn(absl::string_view pem);

}  // namespace hlaunch
