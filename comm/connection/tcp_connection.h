// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>

#include "comm/connection/connection.h"
#include "proto/base/unique_fd.h"

// A connection over TCP. The sender sends FrameHead and bytes for each message; a notice is a frame
// of its own. The receiver sends notices only. All sockets are non-blocking.
//
// One TCP stream is carried by one core of each host and one path of the network. So a message of
// kStripedFrom or more is cut into parts, one for each of up to kMostStreams streams. The frame's
// head, on the first stream, says how many. The first such message opens the further streams and
// does not wait for them.

namespace hlaunch {

inline constexpr int kMostStreams = 8;
inline constexpr size_t kStripedFrom = 1 << 20;

// A stream that is being opened. `greet` continues its greeting; it does not block, and returns
// true once the stream may carry data.
struct ExtraStream {
  UniqueFd fd;
  std::function<bool(int fd)> greet;
};
// Begins to open stream `stream`, which counts from 1; `fd` is not valid if that fails.
using OpenStream = std::function<ExtraStream(int stream)>;

std::unique_ptr<OutConnection> MakeTcpOutConnection(UniqueFd socket, int streams = 1,
                                                    OpenStream open = nullptr);
std::unique_ptr<InConnection> MakeTcpInConnection(UniqueFd socket);

}  // namespace hlaunch
