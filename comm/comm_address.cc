// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/comm_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/contract/env_contract.h"
#include "rendezvous/round/values/master_address.h"

namespace hlaunch {
namespace {

bool IsIpv6(absl::string_view literal) { return absl::StrContains(literal, ':'); }

bool IsWished(absl::string_view interface, absl::string_view wish) {
  const bool all_but = absl::ConsumePrefix(&wish, "^");
  const bool exactly = absl::ConsumePrefix(&wish, "=");
  for (const absl::string_view word : absl::StrSplit(wish, ',', absl::SkipEmpty())) {
    if (exactly ? interface == word : absl::StartsWith(interface, word)) return !all_but;
  }
  return all_but;
}

// Returns how bad an address is as an answer; the lowest is best.
int Fault(const InterfaceAddress& address, absl::string_view route, absl::string_view towards) {
  const int family = IsIpv6(address.literal) == IsIpv6(route) ? 0 : 1;
  if (IsLoopback(address.literal)) return 4 + family;
  // These are networks between the containers of one host.
  const bool inner = absl::StartsWith(address.interface, "docker") ||
                     absl::StartsWith(address.interface, "veth") ||
                     absl::StartsWith(address.interface, "virbr");
  return (address.interface == towards ? -2 : inner ? 2 : 0) + family;
}

}  // namespace

std::vector<InterfaceAddress> InterfaceAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char literal[NI_MAXHOST] = {};
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(at->ifa_addr, size, literal, sizeof literal, nullptr, 0, NI_NUMERICHOST) ==
        0) {
      const bool link_local = absl::StrContains(literal, '%');
      if (!link_local) found.push_back({at->ifa_name, literal});
    }
  }
  return found;
}

absl::StatusOr<std::string> ChooseAddress(const std::vector<InterfaceAddress>& addresses,
                                          absl::string_view wish, absl::string_view route,
                                          bool several_hosts, absl::string_view towards) {
  std::vector<InterfaceAddress> allowed;
  for (const InterfaceAddress& address : addresses) {
    if (wish.empty() || IsWished(address.interface, wish)) allowed.push_back(address);
  }
  if (allowed.empty() && !wish.empty()) {
    std::set<std::string> names;
    for (const InterfaceAddress& address : addresses) names.insert(address.interface);
    return absl::InvalidArgumentError(absl::StrCat(
        kEnvSocketInterface, "=", wish, " is no interface of this host that is up and has an ",
        "address; there are ", names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  const bool route_will_do = !several_hosts || !IsLoopback(route);
  const auto on_route = std::find_if(allowed.begin(), allowed.end(),
                                     [&](const auto& each) { return each.literal == route; });
  if (route_will_do && on_route != allowed.end()) return on_route->literal;
  // A route may begin at an address that no interface lists, such as 127.0.0.2.
  if (wish.empty() && !route.empty() && route_will_do) return std::string(route);
  const auto best =
      std::min_element(allowed.begin(), allowed.end(), [&](const auto& a, const auto& b) {
        return Fault(a, route, towards) < Fault(b, route, towards);
      });
  if (best == allowed.end()) return route.empty() ? "127.0.0.1" : std::string(route);
  return best->literal;
}

}  // namespace hlaunch
