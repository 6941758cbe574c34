// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "rendezvous/net/socket/listen.h"

namespace hlaunch {

// Listens where --listen says: at all addresses if `host` is empty, at a literal, or at the first
// address of a name that is one of this host's. Blocks as long as the resolver does.
//
// Errors: as of ResolveHost and Listen.
absl::StatusOr<ListeningSocket> ListenAt(const std::string& host, uint16_t port);

}  // namespace hlaunch
