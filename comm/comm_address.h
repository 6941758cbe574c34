// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

inline constexpr char kEnvSocketInterface[] = "HLAUNCH_SOCKET_IFNAME";

// An address that an interface of this host has.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string literal;    // IPv6 without brackets.
};

// Of all interfaces that are up, in the kernel's order; without those that hold on one link only.
std::vector<InterfaceAddress> InterfaceAddresses();

// The address at which other ranks reach this host. `wish` is what HLAUNCH_SOCKET_IFNAME holds: a
// comma-separated list of prefixes, `=eth0` for exactly that, `^docker` for all but those, empty
// for no wish; `route` this host's address on its route to the store, empty if there is none.
// Pure. The route's own address wins where the wish allows it, except that with several hosts
// loopback is no answer to them: a host's own name may well lead there.
//
// Errors:
//   InvalidArgument - no interface is as wished; the message names those that are there.
absl::StatusOr<std::string> ChooseAddress(const std::vector<InterfaceAddress>& addresses,
                                          absl::string_view wish, absl::string_view route,
                                          bool several_hosts);

}  // namespace hlaunch
