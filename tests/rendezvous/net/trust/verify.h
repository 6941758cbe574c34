// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <openssl/x509_vfy.h>

#include "rendezvous/net/trust/certificate.h"
#include "rendezvous/net/trust/trust.h"

namespace hlaunch {

// OpenSSL's verdict on `shown` for this purpose, at a peer that trusts `own`; X509_V_OK if it is
// valid.
inline int Verify(const Trust& own, const Trust& shown, int purpose) {
  const Certificate authority = CertificateIn(own.authority());
  const Certificate certificate = CertificateIn(shown.certificate());
  X509_STORE* const store = X509_STORE_new();
  X509_STORE_add_cert(store, authority.get());
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, certificate.get(), nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_verify_cert(context);
  const int verdict = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return verdict;
}

}  // namespace hlaunch
