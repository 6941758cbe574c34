// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Returns whether `error` means that this process or host has no room for another descriptor or
// socket.
bool OutOfDescriptors(int error);

// How long a server that is out of descriptors waits before it accepts again. The connections stay
// in the kernel's queue; an immediate retry would spin.
inline constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// More attempts than a listener's queue can hold connections, so all of them are accepted.
inline constexpr int kMostUnaccepted = 1 << 20;

// Accepts connections at `listener`, which is non-blocking, and gives each to `take`. They are
// close-on-exec and non-blocking. Connections that broke in the queue are left out. Tries at most
// `most` times.
//
// Returns 0 after `most` attempts, EAGAIN if no connection is left, or an error for which
// OutOfDescriptors is true.
int AcceptConnections(int listener, int most, absl::FunctionRef<void(UniqueFd)> take);

// Returns the peer of the connected socket `fd`, for messages: "10.0.0.7 port 40112".
std::string PeerName(int fd);

}  // namespace hlaunch
