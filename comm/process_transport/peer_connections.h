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
#include "rendezvous/store/keys/store.h"

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
  PeerConnections(Store& store, std::string prefix, GroupPlace self, Acceptor acceptor,
                  const ConnectOptions& options, Peers& peers, EventPoll& poll);

  // Writes this rank's address to the store.
  absl::Status Publish();
  const RankAddress& address() const { return acceptor_.address(); }

  // Waits for the peer's address in the store, and notes its host's name.
  //
  // Errors: as Store::Get; InvalidArgument - the address makes no sense.
  absl::StatusOr<RankAddress> LookUp(Peer& peer, Instant deadline);

  // Makes `peer.dialing`, which ContinueDialing turns into `peer.out`. Errors: as Dialing::Begin.
  absl::Status Dial(Peer& peer, const RankAddress& address, Instant deadline);
  // Continues `peer.dialing`, which becomes null if the other rank closed the socket.
  //
  // Errors:
  //   InvalidArgument - one of the two ranks refuses the other; the message says why.
  absl::Status ContinueDialing(Peer& peer);

  // The result of Accept.
  struct News {
    std::vector<Peer*> connected;  // These have `in` since this call.
    Failure second;                // Not OK: two processes have proved that they are the same rank.
  };
  News Accept();
  // Whether a new socket has not proved itself yet.
  bool has_pending() const { return acceptor_.has_pending(); }
  // Tells the ranks whose sockets have not proved themselves yet that this rank leaves.
  void TellLeft() { acceptor_.TellLeft(); }
  // Stops accepting, and drops connections that are not complete.
  void Close();
  // The number of peers connected over shared memory.
  int local_peers() const { return local_peers_; }

 private:
  void AddStreams();

  Store& store_;
  const std::string prefix_;
  GroupPlace self_;
  Acceptor acceptor_;
  const ConnectOptions options_;
  Peers& peers_;
  EventPoll& poll_;
  int local_peers_ = 0;
  std::vector<Accepted> early_streams_;  // Further streams that came before the first one.
};

}  // namespace hlaunch
