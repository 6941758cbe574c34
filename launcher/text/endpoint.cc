// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "launcher/text/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

constexpr size_t kMaxHostName = 253;  // The limit of the domain name system.

// A scope (fe80::1%eth0) is part of the literal.
bool IsIpv6Literal(absl::string_view host) {
  in6_addr address;
  return inet_pton(AF_INET6, std::string(host.substr(0, host.find('%'))).c_str(), &address) == 1;
}

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_'; }

absl::StatusOr<std::string> CheckName(absl::string_view name) {
  if (name.empty()) return absl::InvalidArgumentError("the host is missing");
  if (name.size() > kMaxHostName) {
    return absl::InvalidArgumentError(
        absl::StrCat("a host name has at most ", kMaxHostName, " characters"));
  }
  if (!std::all_of(name.begin(), name.end(), IsNameChar)) {
    return absl::InvalidArgumentError("a host name holds only letters, digits, '-', '.' and '_'");
  }
  return std::string(name);
}

absl::StatusOr<uint16_t> ParsePort(absl::string_view text) {
  int port = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &port) || port > 65535) {
    return absl::InvalidArgumentError("a port is a number from 0 to 65535");
  }
  return static_cast<uint16_t>(port);
}

}  // namespace

absl::StatusOr<Endpoint> ParseListenPlace(absl::string_view text, uint16_t default_port) {
  const absl::string_view port = absl::StripPrefix(text, ":");
  const bool port_only =
      !port.empty() && std::all_of(port.begin(), port.end(), absl::ascii_isdigit);
  absl::StatusOr<Endpoint> endpoint =
      ParseEndpoint(port_only ? absl::StrCat("[::]:", port) : std::string(text), default_port);
  if (endpoint.ok() && endpoint->host == "::") endpoint->host.clear();
  return endpoint;
}

absl::StatusOr<std::vector<Endpoint>> ParseEndpoints(absl::string_view text,
                                                     uint16_t default_port) {
  std::vector<Endpoint> endpoints;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    HLAUNCH_ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpoint(part, default_port));
    endpoints.push_back(std::move(endpoint));
  }
  return endpoints;
}

absl::StatusOr<std::string> ParseHost(absl::string_view text) {
  absl::string_view inner = text;
  if (absl::ConsumePrefix(&inner, "[") && absl::ConsumeSuffix(&inner, "]")) {
    if (IsIpv6Literal(inner)) return std::string(inner);
    return absl::InvalidArgumentError("what stands in brackets is not an IPv6 address");
  }
  if (IsIpv6Literal(text)) return std::string(text);
  return CheckName(text);
}

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text, uint16_t default_port) {
  if (absl::StrContains(text, "//")) {
    return absl::InvalidArgumentError("expected HOST:PORT, not a URL");
  }
  if (!absl::StartsWith(text, "[") && std::count(text.begin(), text.end(), ':') > 1) {
    return absl::InvalidArgumentError(
        "an IPv6 address needs brackets here; write [ADDRESS] or [ADDRESS]:PORT");
  }
  const size_t host_end = absl::StartsWith(text, "[") ? text.find(']') : 0;
  const size_t colon = host_end == text.npos ? text.npos : text.find(':', host_end);
  Endpoint endpoint{"", default_port};
  if (colon != text.npos) {
    HLAUNCH_ASSIGN_OR_RETURN(endpoint.port, ParsePort(text.substr(colon + 1)));
  }
  HLAUNCH_ASSIGN_OR_RETURN(endpoint.host, ParseHost(text.substr(0, colon)));
  return endpoint;
}

bool IsLoopbackLiteral(absl::string_view host) {
  const std::string text(host);
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, text.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace hlaunch
