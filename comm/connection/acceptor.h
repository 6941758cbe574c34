// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "comm/connection/connection.h"
#include "comm/connection/handshake.h"
#include "comm/connection/rank_address.h"
#include "comm/connection/single_copy.h"
#include "proto/base/unique_fd.h"
#include "rendezvous/listening/listen.h"

namespace hlaunch {

// A new connection whose handshake was valid, or a further stream of one.
struct Accepted {
  Rank rank;
  std::string host;
  bool local;  // The rank is on this host, and the connection uses shared memory.
  std::unique_ptr<InConnection> connection;  // Null for a further stream.
  int stream = 0;                            // The number of a further stream, and
  UniqueFd fd{};                             // its socket.
};

// Two listening sockets, one for this host and one for TCP, and the new sockets whose handshake has
// not arrived yet. Belongs to one thread; never blocks.
class Acceptor {
 public:
  // `address` is an IP literal of this host, for TCP.
  //
  // Errors: as Listen.
  static absl::StatusOr<Acceptor> Open(const std::string& address);

  const RankAddress& address() const { return address_; }
  // The listening descriptors, for an epoll that is not edge-triggered.
  std::vector<int> fds() const { return {local_.get(), tcp_.fd.get()}; }
  // The descriptors of new sockets whose handshake has not arrived yet.
  std::vector<int> pending_fds() const;

  // Accepts new sockets and returns those whose handshake has arrived. A socket with a wrong
  // handshake is closed.
  std::vector<Accepted> Accept(SingleCopy single_copy = SingleCopy::kIfFaster);

 private:
  struct Pending {
    UniqueFd fd;
    bool local;
    std::string received;  // The part of the handshake that has arrived.
    UniqueFd passed{};     // The descriptor that came with it.
  };
  enum class ReadResult { kIncomplete, kComplete, kInvalid };

  void AcceptFrom(int listener, bool local);
  static ReadResult ReadHandshake(Pending* pending);
  std::optional<Accepted> Finish(Pending* pending, SingleCopy single_copy) const;

  RankAddress address_;
  UniqueFd local_;
  ListeningSocket tcp_;
  std::vector<Pending> pending_;
};

}  // namespace hlaunch
