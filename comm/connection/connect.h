// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "comm/connection/acceptor.h"
#include "comm/connection/connection.h"
#include "comm/connection/rank_address.h"
#include "proto/base/clock.h"
#include "proto/contract/ids.h"

namespace hlaunch {

// A connection that this rank opens to another rank, until both ranks have proved themselves.
// Belongs to one thread.
class Dialing {
 public:
  enum class State {
    kGreeting,   // The other rank has not answered yet.
    kConnected,  // Take has the connection.
    kRefused,    // One of the two ranks refuses the other: see why().
    kEnded,      // The other rank closed the socket: it is dead or has no room. Dial again.
  };

  // Dials the rank `to` at `address`. Uses shared memory if `shared_memory` is true and the attempt
  // shows that the rank is on this host; else TCP, with up to `streams` streams for large messages.
  // Blocks until `deadline` at most. The first Continue begins the greeting.
  //
  // Errors:
  //   Unavailable - the other rank does not listen any more.
  //   DeadlineExceeded - the other rank's host does not answer.
  //   ResourceExhausted - this process is out of descriptors or memory.
  static absl::StatusOr<std::unique_ptr<Dialing>> Begin(const RankAddress& address, Rank to,
                                                        const GroupPlace& self, bool shared_memory,
                                                        int streams, Instant deadline);
  virtual ~Dialing() = default;

  // For an epoll: readable when Continue can go on.
  virtual int fd() const = 0;
  // Continues the greeting; does not block.
  virtual State Continue() = 0;
  // Returns the connection. Call once, after kConnected.
  virtual std::unique_ptr<OutConnection> Take() = 0;
  // Says in words which rank refuses the other and why. Call after kRefused.
  virtual std::string why() const = 0;
};

}  // namespace hlaunch
