// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// The time for an attempt to connect to one address.
inline constexpr Duration kConnectAttempt = std::chrono::seconds(3);

// Begins to connect to a literal address, with a socket that is close-on-exec, non-blocking and
// sends at once (TCP_NODELAY). If that fails at once, returns an invalid descriptor, with the errno
// in `error`.
UniqueFd BeginToConnect(const std::string& address, uint16_t port, int* error);

}  // namespace hlaunch
