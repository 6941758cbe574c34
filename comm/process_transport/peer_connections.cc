// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/peer_connections.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/connection/connect.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// More streams than this without their connection do not come from ranks.
constexpr size_t kMostEarlyStreams = 4096;

}  // namespace

PeerConnections::PeerConnections(Store& store, std::string prefix, Rank self, Acceptor acceptor,
                                 const ConnectOptions& options, Peers& peers, EventPoll& poll)
    : store_(store),
      prefix_(std::move(prefix)),
      self_(self),
      acceptor_(std::move(acceptor)),
      options_(options),
      peers_(peers),
      poll_(poll) {
  for (const int fd : acceptor_.fds()) poll_.WatchAcceptor(fd);
}

absl::Status PeerConnections::Publish() {
  return store_.Set(absl::StrCat(prefix_, self_), ToText(acceptor_.address()));
}

absl::StatusOr<RankAddress> PeerConnections::LookUp(Peer& peer, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text,
                           store_.Get(absl::StrCat(prefix_, peer.rank), deadline));
  HLAUNCH_ASSIGN_OR_RETURN(RankAddress address, ParseRankAddress(text));
  peer.host = address.host;
  return address;
}

absl::Status PeerConnections::ConnectTo(Peer& peer, const RankAddress& address, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(peer.out, Connect(address, self_, acceptor_.address().host,
                                             options_.shared_memory, options_.streams, deadline));
  poll_.WatchOut(peer.out->fd(), peer.rank);
  return absl::OkStatus();
}

std::vector<Peer*> PeerConnections::Accept() {
  std::vector<Peer*> connected;
  for (Accepted& accepted : acceptor_.Accept(options_.single_copy)) {
    if (accepted.rank >= peers_.size() || accepted.rank == self_) continue;
    Peer& peer = peers_.At(accepted.rank);
    if (accepted.stream != 0) {
      early_streams_.push_back(std::move(accepted));
      continue;
    }
    if (peer.in != nullptr) continue;
    peer.host = accepted.host;
    peer.in = std::move(accepted.connection);
    poll_.WatchIn(peer.in->fd(), peer.rank);
    local_peers_ += accepted.local;
    connected.push_back(&peer);
  }
  AddStreams();
  for (const int fd : acceptor_.pending_fds()) poll_.WatchAcceptor(fd);
  return connected;
}

// Gives further streams to their connections.
void PeerConnections::AddStreams() {
  std::erase_if(early_streams_, [&](Accepted& accepted) {
    Peer& peer = peers_.At(accepted.rank);
    if (peer.in == nullptr) return early_streams_.size() > kMostEarlyStreams;
    const int fd = accepted.fd.get();
    if (peer.in->AddStream(accepted.stream, std::move(accepted.fd))) {
      poll_.WatchIn(fd, peer.rank);
    }
    return true;
  });
}

}  // namespace hlaunch
