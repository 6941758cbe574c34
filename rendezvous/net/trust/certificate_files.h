// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <ctime>
#include <string>

#include "absl/status/statusor.h"

namespace hlaunch {

// The files with a site's own certificates, in PEM. A value.
struct CertificateFiles {
  std::string certificate;  // --tls-cert: this host's certificate and intermediate ones.
  std::string key;          // --tls-key: the key of the certificate.
  std::string authority;    // --tls-ca: one or more trusted authorities.

  bool none() const { return certificate.empty() && key.empty() && authority.empty(); }
};

// What those files hold. A value.
struct Certificates {
  std::string certificate;
  std::string key;
  std::string authority;
  // Names the key's file if other users can read it; else empty. A group may read a file of root,
  // since Kubernetes and Debian give keys to services in this way.
  std::string warning;
};

// Reads the files. The certificate must be valid at `now`, which is in seconds since 1970.
//
// Errors: the messages name the option and the file, and show nothing of what it holds.
//   InvalidArgument - a file is not named, cannot be read, or is not in PEM; the key is not that of
//       the certificate; the certificate is not valid at `now`.
absl::StatusOr<Certificates> ReadCertificates(const CertificateFiles& files, std::time_t now);

// Returns a text that changes if a file is written, replaced or removed. Costs three system calls.
std::string MarkOf(const CertificateFiles& files);

}  // namespace hlaunch
