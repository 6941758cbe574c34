// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/base/unique_fd.h"

// Sockets between two ranks.

namespace hlaunch {

// Sends `bytes` over a unix socket together with a descriptor; false if that fails.
bool SendWithDescriptor(int socket, absl::string_view bytes, int descriptor);
// Reads up to `size` bytes, as recv does; `passed` becomes the descriptor that came with them.
ssize_t ReceiveWithDescriptor(int socket, void* into, size_t size, UniqueFd* passed);

// The address of the abstract unix socket `name`.
std::pair<sockaddr_un, socklen_t> AbstractAddress(const std::string& name);
void SetNoDelay(int socket);
// The process at the other end of a unix socket, as the kernel knows it.
std::optional<pid_t> PeerPid(int socket);
// The user at the other end of a unix socket, if that is neither this process's user nor root.
std::optional<uid_t> OtherUser(int socket);
// Names the other end of `socket` for messages: "10.0.0.7:4711", "process 4711 on this host".
std::string CallerName(int socket);

// Returns ResourceExhausted if errno says that descriptors or memory are used up, else Unavailable.
absl::Status SystemError(const std::string& what);

}  // namespace hlaunch
