// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "proto/base/clock.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/net/port/connection_guard.h"

namespace hlaunch {

// Decides whose TLS handshake begins when, where anybody may ask for one: a handshake costs memory
// and processor time before the peer has proved anything. Few are under way at once, and fewer with
// one address; the addresses have their turn one after another. A connection that waits costs no
// more than its descriptor. Belongs to one thread.
class HandshakeQueue {
 public:
  static constexpr size_t kMost = 128;      // Handshakes under way.
  static constexpr size_t kMostOfOne = 32;  // With one address.
  // A handshake that takes longer is ended. One takes 2 ms, and some round trips.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // `most_waiting`: beyond it, the connection is closed that has waited longest among those of the
  // address with the most.
  explicit HandshakeQueue(size_t most_waiting) : most_waiting_(most_waiting) {}

  // The connection waits for its turn until `deadline`. Returns the address of a connection that
  // was closed for it; empty if none was.
  std::string Add(UniqueFd fd, Instant deadline);

  // Returns a connection whose handshake is to begin now; an invalid one if there is none.
  UniqueFd Next();
  // gRPC gets the TCP socket `fd`.
  void Begun(int fd, std::shared_ptr<const ConnectionGuard> guard, Instant now);

  // Notes which handshakes are over. Ends those that take too long, and closes those connections
  // that have waited too long. Returns how many it ended and closed.
  size_t Look(Instant now);

  // Returns whether connections wait.
  bool waits() const { return waiting_count_ > 0; }
  size_t under_way() const { return under_way_.size(); }

 private:
  struct Waiting {
    UniqueFd fd;
    Instant deadline;
  };
  struct UnderWay {
    int fd;
    uint64_t cookie;
    std::shared_ptr<const ConnectionGuard> guard;
    std::string address;
    Instant began;
  };
  using Queues = std::map<std::string, std::deque<Waiting>>;

  void DropFirst(Queues::iterator queue);

  const size_t most_waiting_;
  Queues waiting_;  // By address; no queue is empty.
  size_t waiting_count_ = 0;
  std::string last_;  // The address that had its turn last.
  std::list<UnderWay> under_way_;
  std::map<std::string, size_t> of_one_;  // How many are under way, by address; none is 0.
};

}  // namespace hlaunch
