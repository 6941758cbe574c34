// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Text that the holders of a token keep where others may read and write. It is encrypted, and only
// holders can change it or put it in the place of another text (AES-256-GCM). Pure, except for
// random numbers.

namespace hlaunch {

// Returns the key for the records of a service's jobs. Empty if OpenSSL refuses.
std::string RecordKeyOf(absl::string_view token);

// Seals `plain`; only OpenText with the same key and `name` can read it. Empty if OpenSSL refuses.
std::string SealText(absl::string_view key, absl::string_view name, absl::string_view plain);

// Errors:
//   DataLoss - it is not sealed, was sealed by another token or under another name, or was changed.
absl::StatusOr<std::string> OpenText(absl::string_view key, absl::string_view name,
                                     absl::string_view sealed);

// Returns whether `text` begins like what SealText makes.
bool IsSealed(absl::string_view text);

}  // namespace hlaunch
