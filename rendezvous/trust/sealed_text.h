// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What the holders of a token keep where others may read and write: encrypted, and nobody else can
// change it or put it in the place of another (AES-256-GCM). Pure, but for the kernel's random
// source.

namespace hlaunch {

// Of the records of a service's jobs. Empty if OpenSSL refuses.
std::string RecordKeyOf(absl::string_view token);

// `plain` as only OpenText with the same key and `name` reads it. Empty if OpenSSL refuses.
std::string SealText(absl::string_view key, absl::string_view name, absl::string_view plain);

// Errors:
//   DataLoss - it is not sealed, by another token, under another name, or was changed since.
absl::StatusOr<std::string> OpenText(absl::string_view key, absl::string_view name,
                                     absl::string_view sealed);

// Whether it begins like what SealText makes.
bool IsSealed(absl::string_view text);

}  // namespace hlaunch
