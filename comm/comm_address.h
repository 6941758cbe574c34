// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hlaunch {

// One address of an interface of this host.
struct InterfaceAddress {
  std::string interface;  // "eth0"
  std::string literal;    // IPv6 without brackets.
};

// Returns the addresses of all interfaces that are up, in the kernel's order, without link-local
// ones.
std::vector<InterfaceAddress> InterfaceAddresses();

// Returns the address at which other ranks reach this host. `wish` is what HLAUNCH_SOCKET_IFNAME
// holds: a comma-separated list of prefixes, `=eth0` for exactly that name, `^docker` for all but
// those, empty for no wish. `route` is this host's address on its route to the store, empty if
// there is none. The route's address is chosen if the wish permits it, unless it is loopback and
// there are several hosts: a host's own name often resolves to loopback, and an agent may stand in
// for the store there. Then an address of the interface `towards` is preferred, which leads to the
// other nodes according to their agents. Pure.
//
// Errors:
//   InvalidArgument - no interface matches the wish; the message names the interfaces of this host.
absl::StatusOr<std::string> ChooseAddress(const std::vector<InterfaceAddress>& addresses,
                                          absl::string_view wish, absl::string_view route,
                                          bool several_hosts, absl::string_view towards = "");

}  // namespace hlaunch
