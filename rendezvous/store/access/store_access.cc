// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "rendezvous/store/access/store_access.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr int kBits = 128;
constexpr int kMappedBits = 96;  // The bits of ::ffff:0:0/96, in front of an IPv4 address.

StoreAddress Mapped(const in_addr& v4) {
  StoreAddress address{};
  address[10] = address[11] = 0xff;
  std::memcpy(address.data() + kMappedBits / 8, &v4, sizeof(v4));
  return address;
}

bool IsMapped(const StoreAddress& address) {
  return address[10] == 0xff && address[11] == 0xff &&
         std::all_of(address.begin(), address.begin() + 10, [](uint8_t byte) { return byte == 0; });
}

bool Contains(const AddressRange& range, const StoreAddress& address) {
  for (int bit = 0; bit < range.bits; bit += 8) {
    const int left = std::min(range.bits - bit, 8);
    const auto mask = static_cast<uint8_t>(0xff << (8 - left));
    if (((range.first[bit / 8] ^ address[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

bool IsLoopback(const StoreAddress& address) {
  static constexpr StoreAddress kV6 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return address == kV6 || (IsMapped(address) && address[kMappedBits / 8] == 127);
}

absl::StatusOr<AddressRange> ParseRange(absl::string_view entry) {
  const absl::Status wrong = absl::InvalidArgumentError(absl::StrCat(
      "'", entry,
      "' is no address and no range; give members, all, 10.0.0.7, 10.1.0.0/16 or fd00::/8"));
  const std::vector<std::string> parts = absl::StrSplit(entry, '/');
  const std::optional<StoreAddress> first = ParseStoreAddress(parts[0]);
  if (!first.has_value() || parts.size() > 2) return wrong;
  const int before = IsMapped(*first) && !absl::StrContains(parts[0], ':') ? kMappedBits : 0;
  int bits = kBits - before;
  if (parts.size() == 2) {
    const bool digits = !parts[1].empty() && parts[1].size() <= 3 &&
                        std::all_of(parts[1].begin(), parts[1].end(), absl::ascii_isdigit);
    if (!digits || !absl::SimpleAtoi(parts[1], &bits) || bits > kBits - before) return wrong;
  }
  return AddressRange{*first, before + bits};
}

SocketEnd EndOf(int fd, int (*tell)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (tell(fd, address, &size) != 0) return {};
  // Both families have their port at the same place.
  return {ToStoreAddress(*address), ntohs(reinterpret_cast<sockaddr_in*>(address)->sin_port)};
}

}  // namespace

std::optional<StoreAddress> ParseStoreAddress(const std::string& literal) {
  const std::string text = literal.substr(0, literal.find('%'));  // Without an IPv6 zone.
  in_addr v4{};
  StoreAddress v6{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return Mapped(v4);
  if (::inet_pton(AF_INET6, text.c_str(), v6.data()) == 1) return v6;
  return std::nullopt;
}

std::string ShowStoreAddress(const StoreAddress& address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (IsMapped(address)) {
    ::inet_ntop(AF_INET, address.data() + kMappedBits / 8, text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, address.data(), text, sizeof(text));
  }
  return text;
}

std::string AllowingOption(const StoreAddress& source) {
  return absl::StrCat("--store-allow=members,", ShowStoreAddress(source));
}

absl::StatusOr<StoreAccess> ParseStoreAllow(absl::string_view list) {
  StoreAccess access;
  access.members = false;
  access.asked_for = true;
  for (const absl::string_view each : absl::StrSplit(list, ',')) {
    const absl::string_view entry = absl::StripAsciiWhitespace(each);
    if (entry == "members") {
      access.members = true;
      continue;
    }
    if (entry == "all") {
      access.known.push_back(AddressRange());
      continue;
    }
    HLAUNCH_ASSIGN_OR_RETURN(const AddressRange range, ParseRange(entry));
    access.known.push_back(range);
  }
  return access;
}

StoreAccess AccessOfRound(StoreAccess wished, const std::vector<std::string>& members,
                          const std::string& own) {
  wished.named.clear();
  if (wished.members) {
    for (const std::string& member : members) {
      if (const auto address = ParseStoreAddress(member)) wished.named.push_back(*address);
    }
    std::sort(wished.named.begin(), wished.named.end());
  }
  wished.at = ParseStoreAddress(own);
  wished.refuse_others = wished.at.has_value() || wished.asked_for;
  return wished;
}

StoreAddress ToStoreAddress(const sockaddr& socket) {
  StoreAddress address{};
  if (socket.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &socket, sizeof(v4));
    address = Mapped(v4.sin_addr);
  } else if (socket.sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &socket, sizeof(v6));
    std::memcpy(address.data(), &v6.sin6_addr, address.size());
  }
  return address;
}

SocketEnd RemoteEndOf(int fd) { return EndOf(fd, ::getpeername); }
SocketEnd LocalEndOf(int fd) { return EndOf(fd, ::getsockname); }

AdmissionVerdict DecideAdmission(const StoreAccess& access, const StoreAddress& source,
                                 const StoreAddress& local) {
  if (access.at.has_value() && local != *access.at && !IsLoopback(local)) {
    return {Admission::kRefuse,
            absl::StrCat("refused a connection from ", ShowStoreAddress(source), " to ",
                         ShowStoreAddress(local), ": the store serves MASTER_ADDR, which is ",
                         ShowStoreAddress(*access.at), ", and loopback")};
  }
  if (std::any_of(access.known.begin(), access.known.end(),
                  [&](const AddressRange& range) { return Contains(range, source); })) {
    return {};
  }
  if (IsLoopback(source) || (source == local && source != StoreAddress())) {
    return {access.any_user ? Admission::kServe : Admission::kAskKernel, ""};
  }
  if (std::binary_search(access.named.begin(), access.named.end(), source)) {
    return {access.vouched && !access.any_user ? Admission::kAskAgent : Admission::kServe, ""};
  }
  if (!access.refuse_others) {
    if (access.vouched && !access.any_user) return {Admission::kAskAgent, ""};
    return {Admission::kServe,
            absl::StrCat("a connection from ", ShowStoreAddress(source),
                         ", which no node of the round has announced; addresses are "
                         "translated here: --store-allow=members refuses such")};
  }
  return {Admission::kRefuse,
          absl::StrCat("refused a connection from ", ShowStoreAddress(source),
                       ", which no node of the round has announced; if it is yours, name it "
                       "on node rank 0: ",
                       AllowingOption(source))};
}

}  // namespace hlaunch
