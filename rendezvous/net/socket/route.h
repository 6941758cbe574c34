// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/clock.h"

// Asks this host's kernel and resolver about addresses, which are literals as in address.h.

namespace hlaunch {

// Returns this host's own address on its route to `literal`. Sends nothing.
//
// Errors:
//   InvalidArgument - `literal` is not a literal.
//   Unavailable - there is no route to it.
absl::StatusOr<std::string> LocalAddressTowards(absl::string_view literal);

// Returns whether `literal` is an address of this host.
bool IsOwnAddress(absl::string_view literal);

// The addresses of `host` (a name or a literal), best first: those with a route before those
// without, IPv4 before IPv6, else in the resolver's order. Blocks as long as the resolver does.
//
// Errors:
//   InvalidArgument - `host` cannot be a name.
//   Unavailable - there is no such name yet, or the name server does not answer; names of pods
//       appear late, so this may pass.
absl::StatusOr<std::vector<std::string>> ResolveHost(const std::string& host);

// Tries to open a TCP connection to `literal`. Returns 0 if it is accepted, else an errno such as
// ECONNREFUSED; ETIMEDOUT if there is no answer within `patience`, for which it blocks. Sends no
// data.
int TryToConnect(const std::string& literal, uint16_t port, Duration patience);

}  // namespace hlaunch
