// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/net/cluster_wire/count_by_address.h"

#include <arpa/inet.h>

namespace hlaunch {

std::string CountedAs(const std::string& literal) {
  constexpr size_t kNetworkBytes = 8;
  in6_addr address{};
  if (::inet_pton(AF_INET6, literal.c_str(), &address) != 1) return literal;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return literal.substr(literal.rfind(':') + 1);
  return std::string(reinterpret_cast<const char*>(&address), kNetworkBytes);
}

bool CountByAddress::Admit(const std::string& literal) {
  if (full()) return false;
  size_t& count = of_one_[CountedAs(literal)];
  if (count == most_of_one_) return false;  // Not 0, so [] has not just added it.
  ++count;
  ++size_;
  return true;
}

void CountByAddress::Leave(const std::string& literal) {
  const auto found = of_one_.find(CountedAs(literal));
  if (found == of_one_.end()) return;
  --size_;
  if (--found->second == 0) of_one_.erase(found);
}

}  // namespace hlaunch
