// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/hosting.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "rendezvous/route.h"

namespace hlaunch {
namespace {

std::string Digits(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST] = {};
  ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

bool IsLinkLocal(const std::string& address) {
  return absl::StartsWithIgnoreCase(address, "fe80:") || absl::StartsWith(address, "169.254.");
}

// Where the listener of an endpoint on this host must be. Other hosts never reach loopback, so
// a name gets all addresses, even if /etc/hosts maps this host's own name to 127.0.1.1.
std::string BindAddress(const Endpoint& endpoint, const std::vector<std::string>& resolved) {
  if (IsLoopbackLiteral(endpoint.host)) return endpoint.host;
  if (endpoint.host != "localhost") return "";
  const auto v4 = std::find_if(resolved.begin(), resolved.end(), [](const std::string& address) {
    return absl::StartsWith(address, "127.");
  });
  return v4 != resolved.end() ? *v4 : "";
}

// Where in this host `address` lives, in words; empty if elsewhere.
std::string PlaceHere(const std::string& address, const std::vector<LocalAddress>& local) {
  for (const LocalAddress& own : local) {
    if (own.address == address) return absl::StrCat(own.interface, " of this host");
  }
  return IsLoopbackLiteral(address) ? "this host's loopback" : "";
}

HostingVerdict DecideByRank(const JobSpec& spec, const std::vector<std::string>& resolved) {
  if (*spec.node_rank == 0) {
    return {true, BindAddress(spec.endpoint, resolved), "this is node rank 0"};
  }
  return {false, "",
          absl::StrCat("this is node rank ", *spec.node_rank, " and rank 0 hosts at ",
                       FormatEndpoint(spec.endpoint))};
}

HostingVerdict DecideByAddress(const JobSpec& spec, const std::vector<std::string>& resolved,
                               const std::vector<LocalAddress>& local) {
  const std::string& host = spec.endpoint.host;
  for (const std::string& address : resolved) {
    const std::string place = PlaceHere(address, local);
    if (place.empty()) continue;
    const std::string subject =
        address == host ? host : absl::StrCat(host, " resolves to ", address, ", which");
    return {true, BindAddress(spec.endpoint, resolved), absl::StrCat(subject, " is ", place)};
  }
  const std::string subject =
      resolved.size() == 1 && resolved.front() == host
          ? host
          : absl::StrCat(host, " resolves to ", absl::StrJoin(resolved, ", "), ", which");
  return {false, "", absl::StrCat(subject, " is no address of this host")};
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
  // Documentation addresses: they match the default route and belong to nobody.
  for (const char* remote : {"192.0.2.1", "2001:db8::1"}) {
    if (const auto own = LocalAddressTowards(remote); own.ok()) return *own;
  }
  return std::nullopt;
}

HostingVerdict DecideHosting(const JobSpec& spec,
                             const absl::StatusOr<std::vector<std::string>>& resolved,
                             const std::vector<LocalAddress>& local, const std::string& own_name) {
  if (spec.mode == JobMode::kSingleNode) return {false, "", "a single node meets nobody"};
  if (spec.mode == JobMode::kListenAndPrint) return {true, "", "no other place was named"};
  if (spec.mode == JobMode::kStatic && spec.node_rank.has_value()) {
    return DecideByRank(spec, resolved.ok() ? *resolved : std::vector<std::string>());
  }
  if (!resolved.ok()) {
    // The record of a pod's name may come later than the pod.
    const std::string& host = spec.endpoint.host;
    if (!own_name.empty() && (absl::EqualsIgnoreCase(host, own_name) ||
                              absl::StartsWithIgnoreCase(host, absl::StrCat(own_name, ".")))) {
      return {true, "", absl::StrCat(host, " does not resolve yet and is this host's name")};
    }
    return {false, "", std::string(resolved.status().message())};
  }
  return DecideByAddress(spec, *resolved, local);
}

std::optional<std::string> PickReachableAddress(const std::optional<std::string>& default_route,
                                                const std::vector<LocalAddress>& local) {
  if (default_route.has_value()) return default_route;
  std::optional<std::string> v6;
  for (const LocalAddress& own : local) {
    if (IsLoopbackLiteral(own.address) || IsLinkLocal(own.address)) continue;
    if (!absl::StrContains(own.address, ":")) return own.address;
    if (!v6.has_value()) v6 = own.address;
  }
  return v6;
}

}  // namespace hlaunch
