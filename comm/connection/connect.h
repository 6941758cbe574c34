// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/connection/connection.h"
#include "comm/connection/rank_address.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// Connects the rank `self` to the one at `address`: over shared memory if `shared_memory` is true
// and the other rank is on this host, which the attempt shows; else over TCP, with up to `streams`
// streams for large messages. Blocks until `deadline` at most.
//
// Errors:
//   Unavailable - the other rank does not listen any more.
//   DeadlineExceeded - the other rank's host does not answer.
//   ResourceExhausted - this process is out of descriptors or memory.
absl::StatusOr<std::unique_ptr<OutConnection>> Connect(const RankAddress& address, Rank self,
                                                       const std::string& own_host,
                                                       bool shared_memory, int streams,
                                                       Instant deadline);

}  // namespace hlaunch
