// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/transport/link.h"
#include "proto/base/unique_fd.h"

// Two ranks with a TCP connection between them, which each end has made non-blocking. Sender to
// receiver: FrameHead and bytes, over and over; news is a frame of its own. Receiver to sender:
// news.
//
// One connection is one flow: one core of each host and one path of the network carry it. So a
// message of kStripedFrom or more is cut into parts, one for each of up to kMostStreams
// connections; the frame's head, on the first one, says how many. The others, sides, are opened
// when the first such message is sent, which does not wait for them.

namespace hlaunch {

inline constexpr int kMostStreams = 8;
inline constexpr size_t kStripedFrom = 1 << 20;

// A connection that is being made, and what is to be said on it first.
struct Side {
  UniqueFd fd;
  std::string hello;
};
// Begins to make side `stream`, from 1 on; one that is not valid if that fails.
using OpenSide = std::function<Side(int stream)>;

std::unique_ptr<OutLink> MakeTcpOutLink(UniqueFd socket, int streams = 1, OpenSide open = nullptr);
std::unique_ptr<InLink> MakeTcpInLink(UniqueFd socket);

}  // namespace hlaunch
