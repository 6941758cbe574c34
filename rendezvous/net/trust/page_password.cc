// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/trust/page_password.h"

#include <openssl/crypto.h>

#include "absl/strings/escaping.h"
#include "rendezvous/net/trust/derived_keys.h"

namespace hlaunch {
namespace {

constexpr char kLabel[] = "status page";
constexpr size_t kBytes = 16;

}  // namespace

std::string PagePassword(absl::string_view token) {
  return absl::BytesToHexString(DeriveBytes(token, kLabel, kBytes));
}

bool SamePassword(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace hlaunch
