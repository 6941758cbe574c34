// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// A job's token as text: the one secret that its nodes share.

namespace hlaunch {

// The longest token that is accepted, in bytes.
inline constexpr size_t kMaxTokenBytes = 2048;

// Checks that `token` is printable ASCII without blanks, and as hard to guess as 128 random bits.
// An attacker who connects can test guesses offline, sixty microseconds each, so a password is not
// enough. The message never holds any part of the token.
//
// Errors:
//   InvalidArgument - `token` fails this check; the message says how to make one.
absl::Status CheckTokenText(absl::string_view token);

// A new token of 256 random bits: 43 characters of the alphabet of base64url (RFC 4648).
std::string NewTokenText();

}  // namespace hlaunch
