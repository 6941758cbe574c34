// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/round/master_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>
#include <set>

namespace hlaunch {
namespace {

bool IsLoopback4(const unsigned char* bytes) {
  return bytes[0] == 127 || (bytes[0] | bytes[1] | bytes[2] | bytes[3]) == 0;
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

std::vector<std::string> MemberAddresses(const std::vector<const NodeInfo*>& members) {
  bool beside_rendezvous = false;
  std::set<std::string> addresses;
  std::set<std::string> routes;
  for (const NodeInfo* member : members) {
    beside_rendezvous |= IsLoopback(member->address);
    addresses.insert({member->address, member->seen_address});
    routes.insert(member->route_address);
  }
  if (beside_rendezvous) addresses.merge(routes);
  std::vector<std::string> reached;
  for (const std::string& address : addresses) {
    if (!IsLoopback(address)) reached.push_back(address);
  }
  return reached;
}

}  // namespace hlaunch
