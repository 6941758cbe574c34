// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>

namespace hlaunch {

// How many bytes the open TCP connections of a process have received and sent so far; the number
// falls when a connection is closed. 0 if the kernel does not tell. Takes a few milliseconds if the
// host has thousands of connections.
uint64_t SocketBytes(pid_t pid);

}  // namespace hlaunch
