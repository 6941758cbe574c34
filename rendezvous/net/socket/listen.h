// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// A TCP socket that is bound and listening: close-on-exec, not blocking. A movable value.
struct ListeningSocket {
  UniqueFd fd;
  uint16_t port = 0;    // The real one, also when port 0 was asked for.
  std::string address;  // As bound: a literal, "::" or "0.0.0.0" for all of this host's.
};

// Listens on a literal IPv4 or IPv6 address of this host; empty means all of them, both families
// where the host has IPv6. Port 0 takes any free port. Never shares a port with another server.
//
// Errors:
//   InvalidArgument - `address` is not a literal, or not an address of this host.
//   AlreadyExists - the port is in use; the message names address and port.
//   PermissionDenied - the port needs a privilege.
//   ResourceExhausted - out of descriptors or of ports.
absl::StatusOr<ListeningSocket> Listen(absl::string_view address, uint16_t port);

// Keeps a port of all addresses for another process. The socket is bound but does not listen, so
// the kernel does not give the port to a process that asks for any free port. A process that names
// the port and sets SO_REUSEADDR (torch's TCPStore, libuv, gRPC and so JAX) can listen there. A
// port that is taken or reserved is refused; with `named` only a port where some process listens is
// refused.
//
// Errors: as Listen.
absl::StatusOr<ListeningSocket> Reserve(uint16_t port, bool named = false);

}  // namespace hlaunch
