// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// Whether `error` says that this process or host has no room for one descriptor or socket more.
bool OutOfDescriptors(int error);

// How long a server waits after that before it accepts again: the connections stay in the
// kernel's queue, and asking again at once would spin.
inline constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// More attempts than a listener's queue can hold connections: accepts all of them.
inline constexpr int kMostUnaccepted = 1 << 20;

// Accepts connections at `listener`, which does not block, and gives each to `take`:
// close-on-exec, not blocking. Connections that broke in the queue are left out. Tries at most
// `most` times.
//
// Returns 0 if it has tried as often, EAGAIN if no connection is left, and else an error of which
// OutOfDescriptors is true.
int AcceptConnections(int listener, int most, absl::FunctionRef<void(UniqueFd)> take);

// The other end of the connected socket `fd`, for messages: "10.0.0.7 port 40112".
std::string PeerName(int fd);

}  // namespace hlaunch
