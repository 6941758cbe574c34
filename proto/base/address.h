// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// Addresses as text: an IPv4 or IPv6 literal without brackets, with `%interface` where the
// address is link-local.

namespace hlaunch {

// Whether `text` is such a literal. Pure, but for the names of this host's interfaces.
bool IsAddressLiteral(absl::string_view text);

// `host:port`, with brackets around an IPv6 literal: for people, and for programs that parse it.
// Pure.
std::string HostPort(absl::string_view host, uint16_t port);

}  // namespace hlaunch
