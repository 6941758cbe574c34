// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/values/master_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "rendezvous/round/values/limits.h"

namespace hlaunch {
namespace {

bool IsLoopback4(const unsigned char* bytes) {
  return bytes[0] == 127 || (bytes[0] | bytes[1] | bytes[2] | bytes[3]) == 0;
}

// Returns whether `address` is in 169.254/16 or fe80::/10, which every host may use for itself on
// each of its links.
bool IsLinkLocal(absl::string_view address) {
  const std::string literal(address.substr(0, address.find('%')));
  unsigned char bytes[sizeof(in6_addr)] = {};
  if (inet_pton(AF_INET, literal.c_str(), bytes) == 1) return bytes[0] == 169 && bytes[1] == 254;
  if (inet_pton(AF_INET6, literal.c_str(), bytes) != 1) return false;
  return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

}  // namespace

bool IsLoopback(absl::string_view address) {
  const std::string literal(address.substr(0, address.find('%')));  // Without an IPv6 zone.
  in_addr v4{};
  if (inet_pton(AF_INET, literal.c_str(), &v4) == 1) {
    return IsLoopback4(reinterpret_cast<const unsigned char*>(&v4));
  }
  in6_addr v6{};
  if (inet_pton(AF_INET6, literal.c_str(), &v6) != 1) return true;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return IsLoopback4(v6.s6_addr + 12);
  return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6);
}

std::string MasterAddress(const std::vector<const NodeInfo*>& members) {
  const std::string& own = members[0]->address;
  if (!IsLoopback(own)) return own;
  for (const NodeInfo* member : members) {
    if (!IsLoopback(member->route_address)) return member->route_address;
  }
  return own.empty() ? "127.0.0.1" : own;
}

std::vector<std::string> SelectAnnounced(const std::vector<std::string>& local) {
  std::vector<std::string> announced;
  for (const bool v6 : {false, true}) {
    for (const std::string& address : local) {
      const bool counts = absl::StrContains(address, ':') == v6 && !IsLoopback(address) &&
                          !IsLinkLocal(address) && announced.size() < kMaxOtherAddresses;
      if (counts) announced.push_back(address);
    }
  }
  return announced;
}

std::vector<std::string> MemberAddresses(const std::vector<const NodeInfo*>& members) {
  bool beside_rendezvous = false;
  std::vector<std::string> addresses;
  std::set<std::string> routes;  // There are few.
  const size_t most = members.empty() ? 0 : kMaxMemberAddresses / members.size();
  for (const NodeInfo* member : members) {
    const std::vector<std::string>& others = member->other_addresses;
    beside_rendezvous |= IsLoopback(member->address);
    addresses.insert(addresses.end(), {member->address, member->seen_address});
    addresses.insert(addresses.end(), others.begin(),
                     others.begin() + static_cast<ptrdiff_t>(std::min(most, others.size())));
    routes.insert(member->route_address);
  }
  if (beside_rendezvous) addresses.insert(addresses.end(), routes.begin(), routes.end());
  std::erase_if(addresses, IsLoopback);
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

}  // namespace hlaunch
