// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/address.h"

namespace hlaunch {

inline constexpr uint16_t kDefaultRdzvPort = 29400;    // torchrun's c10d default.
inline constexpr uint16_t kDefaultMasterPort = 29500;  // torchrun's static default.

// Where the nodes of a job meet. A value.
struct Endpoint {
  std::string host;   // A name or a literal, IPv6 without brackets.
  uint16_t port = 0;  // 0: any.
};

// Reads HOST, HOST:PORT, [IPV6] or [IPV6]:PORT. Resolves nothing.
//
// Errors:
//   InvalidArgument - says what is wrong with `text` and how to write it; does not repeat `text`.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text, uint16_t default_port);

// Reads where to listen: as ParseEndpoint, or a port alone, PORT or :PORT, which stands for all
// addresses, as [::] does; the host is empty then.
//
// Errors:
//   InvalidArgument - as ParseEndpoint.
absl::StatusOr<Endpoint> ParseListenPlace(absl::string_view text, uint16_t default_port);

// Reads several endpoints, separated by commas.
//
// Errors:
//   InvalidArgument - as ParseEndpoint.
absl::StatusOr<std::vector<Endpoint>> ParseEndpoints(absl::string_view text, uint16_t default_port);

// Reads a host without a port: a name, or an IPv4 or IPv6 literal, with or without brackets.
//
// Errors:
//   InvalidArgument - as ParseEndpoint.
absl::StatusOr<std::string> ParseHost(absl::string_view text);

// Returns `host:port`, with brackets around an IPv6 address.
inline std::string HostPort(const Endpoint& endpoint) {
  return HostPort(endpoint.host, endpoint.port);
}

// Returns whether `host` is a loopback literal: 127.0.0.0/8 or ::1.
bool IsLoopbackLiteral(absl::string_view host);

}  // namespace hlaunch
