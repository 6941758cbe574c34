// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "rendezvous/net/port/connection_guard.h"

// gRPC 1.51 takes all that a peer sends and tells nobody of it. It does so by recvmsg(2) and
// sendmsg(2) of the C library, in whose place programs that contain this file call its functions.
// They do what the library's do, and show the bytes of guarded sockets to their guards.

namespace hlaunch {

// From now on all that is read from and written to the TCP socket `fd` by recvmsg and sendmsg is
// shown to `guard`, until the socket is closed. If the guard refuses what was read, the connection
// is shut down and the reader gets ECONNRESET instead. Thread-safe.
void GuardSocket(int fd, std::shared_ptr<ConnectionGuard> guard);

}  // namespace hlaunch
