// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Who has a TCP connection of this host. A port is open to all users of the hosts that reach it,
// and each host's kernel knows whose the connections are.

namespace hlaunch {

// Returns the user who has made the socket at the other end of `fd`, a connected TCP socket, as
// this process's user namespace sees the user: users that it does not map are all 65534.
//
// Errors:
//   NotFound - no process of this network namespace has the other end, or none has it any more.
//   Unavailable - the kernel does not tell.
//   ResourceExhausted - out of descriptors or memory.
absl::StatusOr<uid_t> UserOfLoopbackPeer(int fd);

// Returns the user who has made the socket of this host at `address` and `port` that is connected
// to the same other end as `fd`. `address` is an IPv6 one, or an IPv4 one as ::ffff:a.b.c.d.
//
// Errors: as UserOfLoopbackPeer.
absl::StatusOr<uid_t> UserOfSibling(int fd, const std::array<uint8_t, 16>& address, uint16_t port);

// True for this process's user and for root, who may do what that user may.
bool IsOwnUser(uid_t user);

// Returns OK unless the kernel says that the other end of `fd` belongs to neither this process's
// user nor root. So it is OK where the kernel does not tell: who comes must prove himself in
// another way as well.
//
// Errors: as UserOfLoopbackPeer, but for Unavailable; and
//   PermissionDenied - the other end is another user's; the message names the user by number.
absl::Status CheckPeerIsOwn(int fd);

}  // namespace hlaunch
