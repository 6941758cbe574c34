// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hlaunch {

// One address of an interface of this host. A value.
struct LocalAddress {
  std::string interface;
  std::string address;  // In digits, IPv6 without brackets and with its scope if it has one.
};

// This host's own name, as the kernel has it; "localhost" if it has none.
std::string HostName();

// The addresses of all interfaces that are up.
//
// Errors:
//   Internal - the kernel did not list them.
absl::StatusOr<std::vector<LocalAddress>> ListLocalAddresses();

// Returns the source address of this host's default route, unset if there is none. Sends nothing.
std::optional<std::string> DefaultRouteAddress();

}  // namespace hlaunch
