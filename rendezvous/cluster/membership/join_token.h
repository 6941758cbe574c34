// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A join token lets one host into a cluster of one's own, once and within ten minutes:
//
//   hlj1.<id and secret in base64url>.<the authority's pin in hex>
//
// The head finds a token by its id and keeps only a hash of its secret. The host recognizes the
// head by the pin, before it sends the secret. All functions are pure except for random numbers.

namespace hlaunch {

// A value; `secret` is secret.
struct JoinToken {
  std::string id;      // 16 hex digits.
  std::string secret;  // 48 hex digits.
  std::string pin;     // 32 hex digits: KeyPinOf the authority.

  bool operator==(const JoinToken&) const = default;
};

// Makes a new token for the cluster whose authority has this pin.
JoinToken MakeJoinToken(absl::string_view pin);

// Errors: the message shows nothing of the text.
//   InvalidArgument - it is not a join token, or not a whole one.
absl::StatusOr<JoinToken> ReadJoinToken(absl::string_view text);

std::string TextOf(const JoinToken& token);

// Returns the SHA-256 in hex: a secret of 192 random bits needs no slower hash. Empty if OpenSSL
// refuses.
std::string HashOfSecret(absl::string_view secret);

}  // namespace hlaunch
