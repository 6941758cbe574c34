// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "rendezvous/net/trust/certificate.h"

// Derives keys from a secret, such as a service's or a job's token, by HKDF-SHA256 (RFC 5869). Only
// this folder may use this file.

namespace hlaunch {

// Returns `size` bytes for one use of a secret, named by `label`; empty if OpenSSL refuses.
std::string DeriveBytes(absl::string_view secret, absl::string_view label, size_t size);

// The sizes of what DerivedKeys has in hex digits.
inline constexpr size_t kNameBytes = 16;
inline constexpr size_t kFingerprintBytes = 4;

// A value that cannot be copied.
struct DerivedKeys {
  std::string server_name;  // "….hlaunch".
  std::string fingerprint;  // Eight hex digits.
  Key authority;            // Of P-256.
};

// Returns what a service makes the secrets of its jobs from. Empty if OpenSSL refuses.
std::string SecretOfJobs(absl::string_view token);

// Returns the secret of one job, kSeedBytes. Only the holders of the service's token can make it.
std::string SecretOfJob(absl::string_view secret_of_jobs, absl::string_view job_id);

// Returns the key that proves in clear that a peer holds a token or a job's secret.
std::string GreetingKeyOf(absl::string_view secret);

// Errors:
//   Internal - OpenSSL refuses.
absl::StatusOr<DerivedKeys> DeriveKeys(absl::string_view token);

// The size of a seed of KeyOfSeed.
inline constexpr size_t kSeedBytes = 48;

// Returns the P-256 key whose private number is `seed`, reduced to 1 … order - 1 (FIPS 186-5,
// A.2.1). Null if OpenSSL refuses.
Key KeyOfSeed(absl::string_view seed);

// Makes the certificate of the authority with this key, signed by `signer`. Null if OpenSSL
// refuses.
Certificate AuthorityCertificate(EVP_PKEY* authority, EVP_PKEY* signer);

}  // namespace hlaunch
