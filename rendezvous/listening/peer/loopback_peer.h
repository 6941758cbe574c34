// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Who has the other end of a TCP connection within this host. A port on loopback is open to all
// users of the host, and the kernel knows whose the connections are.

namespace hlaunch {

// Returns the user who has made the socket at the other end of `fd`, a connected TCP socket, as
// this process's user namespace sees the user: users that it does not map are all 65534.
//
// Errors:
//   NotFound - no process of this network namespace has the other end, or none has it any more.
//   Unavailable - the kernel does not tell.
//   ResourceExhausted - out of descriptors or memory.
absl::StatusOr<uid_t> UserOfLoopbackPeer(int fd);

// Returns OK unless the kernel says that the other end of `fd` belongs to neither this process's
// user nor root. So it is OK where the kernel does not tell: who comes must prove himself in
// another way as well.
//
// Errors: as UserOfLoopbackPeer, but for Unavailable; and
//   PermissionDenied - the other end is another user's; the message names the user by number.
absl::Status CheckPeerIsOwn(int fd);

}  // namespace hlaunch
