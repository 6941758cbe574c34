// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm/connection/acceptor.h"
#include "comm/process_transport/event_poll.h"
#include "comm/process_transport/peer.h"
#include "proto/base/clock.h"
#include "rendezvous/store/store.h"

namespace hlaunch {

struct ConnectOptions {
  bool shared_memory;
  SingleCopy single_copy;
  int streams;
};

// Makes the connections between this rank and its peers. The store holds the address of each rank.
// Belongs to the transport's thread.
class PeerConnections {
 public:
  // `prefix` begins the keys in the store; a rank's number follows. References outlive the object.
  PeerConnections(Store& store, std::string prefix, Rank self, Acceptor acceptor,
                  const ConnectOptions& options, Peers& peers, EventPoll& poll);

  // Writes this rank's address to the store.
  absl::Status Publish();
  const RankAddress& address() const { return acceptor_.address(); }

  // Waits for the peer's address in the store, and notes its host's name.
  //
  // Errors: as Store::Get; InvalidArgument - the address makes no sense.
  absl::StatusOr<RankAddress> LookUp(Peer& peer, Instant deadline);

  // Makes `peer.out`. Errors: as hlaunch::Connect.
  absl::Status ConnectTo(Peer& peer, const RankAddress& address, Instant deadline);

  // Accepts connections from peers; returns the peers that have `in` since this call.
  std::vector<Peer*> Accept();
  // Whether a new socket has not sent its handshake yet.
  bool has_pending() const { return !acceptor_.pending_fds().empty(); }
  // Peers with a connection over shared memory.
  int local_peers() const { return local_peers_; }

 private:
  void AddStreams();

  Store& store_;
  const std::string prefix_;
  const Rank self_;
  Acceptor acceptor_;
  const ConnectOptions options_;
  Peers& peers_;
  EventPoll& poll_;
  int local_peers_ = 0;
  std::vector<Accepted> early_streams_;  // Further streams that came before the first one.
};

}  // namespace hlaunch
