// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace hlaunch {

// How many bytes the open TCP connections of processes have received and sent so far, those that
// they share counted once; the number falls when a connection is closed. 0 if the kernel does not
// tell. Takes a few milliseconds if the host has thousands of connections.
uint64_t SocketBytes(const std::vector<pid_t>& pids);

}  // namespace hlaunch
