// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <string>

#include "absl/status/statusor.h"

namespace hlaunch {

// The files with a site's own certificates, in PEM. A value.
struct CertificateFiles {
  std::string certificate;  // --tls-cert: this host's, and those between it and the authority's.
  std::string key;          // --tls-key: that of the certificate.
  std::string authority;    // --tls-ca: whose certificates are believed; one or more.

  bool none() const { return certificate.empty() && key.empty() && authority.empty(); }
};

// What those files hold. A value.
struct Certificates {
  std::string certificate;
  std::string key;
  std::string authority;
  // Names the key's file if others can read it; else empty. A file of root's may be readable by a
  // group, as Kubernetes and Debian hand keys to services.
  std::string warning;
};

// Reads them as of `now`, which is in seconds since 1970.
//
// Errors: the messages name the option and the file, and show nothing of what it holds.
//   InvalidArgument - a file is not named, cannot be read, or is not in PEM; the key is not that of
//       the certificate; the certificate is not valid at `now`.
absl::StatusOr<Certificates> ReadCertificates(const CertificateFiles& files, std::time_t now);

// A text that is another one once a file was written, replaced or removed. It costs three calls of
// the system.
std::string MarkOf(const CertificateFiles& files);

}  // namespace hlaunch
