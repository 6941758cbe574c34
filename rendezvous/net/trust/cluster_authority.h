// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <openssl/types.h>

#include <ctime>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The authority of a cluster of one's own, which the head keeps, and the certificates that it
// signs: one for the head, and one for each host. A certificate states its purpose twice: its URI
// is "hlaunch-head" or "hlaunch-host:NAME", and the head's is for servers only, a host's for
// clients only. So a thief of a host's certificate cannot pose as the head. All functions are pure
// except for random numbers.

namespace hlaunch {

// What one end shows and trusts, in PEM. A value; `key` is secret.
struct HostIdentity {
  std::string authority;
  std::string certificate;
  std::string key;
};

// In PEM. A value; `key` is secret.
struct Authority {
  std::string certificate;
  std::string key;
};

// A request for a certificate, and its key, in PEM. A value; `key` is secret.
struct HostRequest {
  std::string request;
  std::string key;
};

// What a host's certificate says. A value.
struct CertifiedHost {
  std::string host;
  std::time_t issued = 0;  // When it was signed; valid kClockTolerance earlier: clocks differ.
  std::time_t expires = 0;
};

inline constexpr std::time_t kCertificateLife = 30 * 86400;  // In seconds.
inline constexpr std::time_t kRenewAfter = 20 * 86400;       // Age at which it is renewed.
inline constexpr std::time_t kClockTolerance = 3600;         // Between the clocks of two hosts.
inline constexpr size_t kMaxRequestBytes = 8192;

// Makes a new authority, which does not expire.
//
// Errors, of all functions that make something:
//   Internal - OpenSSL refuses.
absl::StatusOr<Authority> MakeAuthority(std::time_t now);

// Makes what the head shows: a new key and a certificate that is valid for kCertificateLife.
//
// Errors:
//   InvalidArgument - `authority` is not whole.
absl::StatusOr<HostIdentity> MakeHeadIdentity(const Authority& authority, std::time_t now);

// Makes a new key and the request to certify it. The authority takes nothing but the key from a
// request, so the name in it is only for people.
absl::StatusOr<HostRequest> MakeHostRequest(const std::string& host);

// Makes a certificate of `host` for the key of the request, issued at `now` and valid until
// `until`.
//
// Errors:
//   InvalidArgument - the request is not one, is longer than kMaxRequestBytes, is not signed by its
//       own key, or has a key that is not of P-256; `host` cannot be a host's name (see
//       IsClusterHostName); `authority` is not whole.
absl::StatusOr<std::string> SignHostRequest(const Authority& authority,
                                            const std::string& request_pem, const std::string& host,
                                            std::time_t now, std::time_t until);

// Returns what the certificate says. Does not check its signature and dates: TLS does that.
//
// Errors:
//   InvalidArgument - it is not a host's certificate but the head's, another program's, or not PEM.
absl::StatusOr<CertifiedHost> ReadHostCertificate(const X509* certificate);
absl::StatusOr<CertifiedHost> ReadHostCertificate(const std::string& certificate_pem);

// Returns whether the key is that of the certificate, both in PEM.
bool KeyFits(const std::string& key_pem, const std::string& certificate_pem);

// Checks that all of `identity` fits together: the key is the certificate's, and the authority has
// signed the certificate. Returns what the certificate says. Does not check the dates.
//
// Errors:
//   InvalidArgument - it does not fit, or the certificate is not a host's.
absl::StatusOr<CertifiedHost> CheckHostIdentity(const HostIdentity& identity);

// Returns whether the certificate says that it is the head's. As above, TLS checks the rest.
bool IsHeadCertificate(const X509* certificate);

// Return what a join token holds to tell one authority from all others: the first half of the
// SHA-256 of its public key (SubjectPublicKeyInfo), in 32 hex digits. Empty if there is no
// certificate.
std::string KeyPinOf(const X509* authority);
std::string KeyPinOf(const std::string& authority_pem);

}  // namespace hlaunch
