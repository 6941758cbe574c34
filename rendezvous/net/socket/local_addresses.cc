// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/socket/local_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "rendezvous/net/socket/route.h"

namespace hlaunch {
namespace {

std::string Digits(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

}  // namespace

std::string HostName() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

absl::StatusOr<std::vector<LocalAddress>> ListLocalAddresses() {
  ifaddrs* found = nullptr;
  if (::getifaddrs(&found) != 0) {
    return absl::InternalError(absl::StrCat("getifaddrs: ", std::strerror(errno)));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(found, ::freeifaddrs);
  std::vector<LocalAddress> local;
  for (const ifaddrs* entry = found; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    local.push_back({entry->ifa_name, Digits(entry->ifa_addr, length)});
  }
  return local;
}

std::optional<std::string> DefaultRouteAddress() {
  // Documentation addresses match the default route and belong to no host.
  for (const char* remote : {"192.0.2.1", "2001:db8::1"}) {
    if (const auto own = LocalAddressTowards(remote); own.ok()) return *own;
  }
  return std::nullopt;
}

}  // namespace hlaunch
