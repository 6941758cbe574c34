// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>

#include "comm/link.h"
#include "proto/base/unique_fd.h"

// Two ranks with a TCP connection between them, which each end has made non-blocking. Sender to
// receiver: FrameHead and bytes, over and over; news is a frame of its own. Receiver to sender:
// news.

namespace hlaunch {

std::unique_ptr<OutLink> MakeTcpOutLink(UniqueFd socket);
std::unique_ptr<InLink> MakeTcpInLink(UniqueFd socket);

}  // namespace hlaunch
