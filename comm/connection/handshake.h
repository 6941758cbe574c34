// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "comm/connection/rank_address.h"
#include "comm/connection/single_copy.h"
#include "proto/base/unique_fd.h"
#include "proto/contract/ids.h"

// What the acceptor and the connecting rank must agree on.

namespace hlaunch {

// The first message on every new connection and stream, sent as it lies in memory: all hosts of a
// job have the same architecture.
struct Handshake {
  char token[kTokenSize];  // The receiver's, from its RankAddress.
  Rank rank;               // The sender's.
  int32_t stream;          // 0, or the number of a further stream of a TCP connection.
  PullProof proof;
  char host[64];
};
static_assert(std::is_trivially_copyable_v<Handshake>);

Handshake MakeHandshake(const RankAddress& to, Rank self, const std::string& own_host);

// Sends `handshake` over a unix socket together with a descriptor; false if that fails.
bool SendWithDescriptor(int socket, const Handshake& handshake, int descriptor);
// Reads up to `size` bytes, as recv does; `passed` becomes the descriptor that came with them.
ssize_t ReceiveWithDescriptor(int socket, void* into, size_t size, UniqueFd* passed);

// The address of the abstract unix socket `name`.
std::pair<sockaddr_un, socklen_t> AbstractAddress(const std::string& name);
void SetNoDelay(int socket);

// ResourceExhausted where errno says that descriptors or memory are used up, else Unavailable.
absl::Status SystemError(const std::string& what);

}  // namespace hlaunch
