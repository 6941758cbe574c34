// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <openssl/types.h>

#include <ctime>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The authority of a cluster of one's own, which its head keeps, and the certificates that it
// signs: one of the head, and one of each host. What a certificate is for stands in it twice. Its
// URI says "hlaunch-head" or "hlaunch-host:NAME", and the head's is for servers alone, a host's for
// clients alone, so nobody who has stolen a host's can play the head. All is pure but for random
// numbers.

namespace hlaunch {

// What one end shows and believes, in PEM. A value; `key` is secret.
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
  std::time_t issued = 0;  // When it was signed. It is valid from a while before: clocks differ.
  std::time_t expires = 0;
};

inline constexpr std::time_t kCertificateLife = 30 * 86400;  // In seconds.
inline constexpr std::time_t kRenewAfter = 20 * 86400;       // So long after it was issued.
inline constexpr std::time_t kClockTolerance = 3600;         // Between two hosts.
inline constexpr size_t kMaxRequestBytes = 8192;

// A new authority, which does not expire.
//
// Errors, of all that make something:
//   Internal - OpenSSL refuses.
absl::StatusOr<Authority> MakeAuthority(std::time_t now);

// What the head shows: a new key and a certificate for kCertificateLife.
//
// Errors:
//   InvalidArgument - `authority` is not whole.
absl::StatusOr<HostIdentity> MakeHeadIdentity(const Authority& authority, std::time_t now);

// A new key, and the request to certify it. The authority takes nothing else of a request, so the
// name in it is for people.
absl::StatusOr<HostRequest> MakeHostRequest(const std::string& host);

// The certificate of `host` for the key of the request, issued at `now` and valid until `until`.
//
// Errors:
//   InvalidArgument - the request is none, is longer than kMaxRequestBytes, is not signed by its
//       own key, or has a key that is not of P-256; `host` can be no host's name (see
//       IsClusterHostName); `authority` is not whole.
absl::StatusOr<std::string> SignHostRequest(const Authority& authority,
                                            const std::string& request_pem, const std::string& host,
                                            std::time_t now, std::time_t until);

// What the certificate says. Who has signed it and when is not looked at here: TLS does that.
//
// Errors:
//   InvalidArgument - it is not a host's certificate: the head's, another program's, or no PEM.
absl::StatusOr<CertifiedHost> ReadHostCertificate(const X509* certificate);
absl::StatusOr<CertifiedHost> ReadHostCertificate(const std::string& certificate_pem);

// Whether the key is that of the certificate, both in PEM.
bool KeyFits(const std::string& key_pem, const std::string& certificate_pem);

// What the certificate of `identity` says, once all of it fits together: the key is the
// certificate's, and the authority has signed that. Its dates are not looked at.
//
// Errors:
//   InvalidArgument - it does not, or it is not a host's.
absl::StatusOr<CertifiedHost> CheckHostIdentity(const HostIdentity& identity);

// Whether it says that it is the head's. As above, TLS looks at the rest.
bool IsHeadCertificate(const X509* certificate);

// What a join token has to tell one authority from all others: the first half of the SHA-256 of its
// public key (SubjectPublicKeyInfo), in 32 hex digits. Empty: there is no certificate.
std::string KeyPinOf(const X509* authority);
std::string KeyPinOf(const std::string& authority_pem);

}  // namespace hlaunch
