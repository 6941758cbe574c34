// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/cluster/head/random_secret.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

std::string RandomSecret() {
  std::string bytes(32, '\0');
  const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
  HLAUNCH_CHECK(got == static_cast<ssize_t>(bytes.size()));
  std::string text = absl::WebSafeBase64Escape(bytes);
  while (!text.empty() && text.back() == '=') text.pop_back();
  return text;
}

}  // namespace hlaunch
