// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <string>

#include "proto/base/unique_fd.h"

namespace hlaunch {

// Begins to connect to a literal address, with a socket that is close-on-exec, does not block and
// sends at once (TCP_NODELAY). Returns nothing, with the reason in `error` (errno), if that fails
// at once.
UniqueFd BeginToConnect(const std::string& address, uint16_t port, int* error);

}  // namespace hlaunch
