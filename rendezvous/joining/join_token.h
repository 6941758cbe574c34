// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What lets one host into a cluster of one's own, once and for ten minutes:
//
//   hlj1.<id and secret in base64url>.<the authority's pin in hex>
//
// The head knows a token by its id and keeps only a hash of its secret; the host knows the head by
// the pin, before it says the secret. All is pure but for random numbers.

namespace hlaunch {

// A value; `secret` is secret.
struct JoinToken {
  std::string id;      // 16 hex digits.
  std::string secret;  // 48 hex digits.
  std::string pin;     // 32 hex digits: KeyPinOf the authority.

  bool operator==(const JoinToken&) const = default;
};

// A new one for the cluster whose authority has this pin.
JoinToken MakeJoinToken(absl::string_view pin);

// Errors: the message shows nothing of it.
//   InvalidArgument - it is not a join token, or not a whole one.
absl::StatusOr<JoinToken> ReadJoinToken(absl::string_view text);

std::string TextOf(const JoinToken& token);

// SHA-256 in hex: a secret of 192 random bits needs no slower hash. Empty if OpenSSL refuses.
std::string HashOfSecret(absl::string_view secret);

}  // namespace hlaunch
