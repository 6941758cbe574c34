// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "proto/base/address.h"

#include <netdb.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hlaunch {

bool IsAddressLiteral(absl::string_view text) {
  addrinfo hints = {};
  hints.ai_flags = AI_NUMERICHOST;
  addrinfo* list = nullptr;
  if (text.empty() || ::getaddrinfo(std::string(text).c_str(), nullptr, &hints, &list) != 0) {
    return false;
  }
  ::freeaddrinfo(list);
  return true;
}

std::string HostPort(absl::string_view host, uint16_t port) {
  if (absl::StrContains(host, ':')) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

}  // namespace hlaunch
