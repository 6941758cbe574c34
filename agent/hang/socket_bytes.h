// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/types.h>

#include <cstdint>

namespace hlaunch {

// How many bytes have come and gone by the TCP connections that a process has, so far; less once
// one of them is closed. 0 where the kernel does not say. Takes a few milliseconds where the host
// has thousands of connections.
uint64_t SocketBytes(pid_t pid);

}  // namespace hlaunch
