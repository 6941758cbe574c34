// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/peer_connections.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "comm/connection/connect.h"
#include "proto/base/status_macros.h"

namespace hlaunch {
namespace {

// If more streams than this have no connection, they do not come from ranks.
constexpr size_t kMostEarlyStreams = 4096;

}  // namespace

PeerConnections::PeerConnections(Store& store, std::string prefix, GroupPlace self,
                                 Acceptor acceptor, const ConnectOptions& options, Peers& peers,
                                 EventPoll& poll)
    : store_(store),
      prefix_(std::move(prefix)),
      self_(std::move(self)),
      acceptor_(std::move(acceptor)),
      options_(options),
      peers_(peers),
      poll_(poll) {
  self_.host = acceptor_.address().host;
  poll_.WatchAcceptor(acceptor_.fd());
}

absl::Status PeerConnections::Publish() {
  return store_.Set(absl::StrCat(prefix_, self_.rank), ToText(acceptor_.address()));
}

absl::StatusOr<RankAddress> PeerConnections::LookUp(Peer& peer, Instant deadline) {
  HLAUNCH_ASSIGN_OR_RETURN(const std::string text,
                           store_.Get(absl::StrCat(prefix_, peer.rank), deadline));
  HLAUNCH_ASSIGN_OR_RETURN(RankAddress address, ParseRankAddress(text));
  peer.host = address.host;
  return address;
}

absl::Status PeerConnections::Dial(Peer& peer, const RankAddress& address, Instant deadline) {
  ++peer.dialed;
  HLAUNCH_ASSIGN_OR_RETURN(peer.dialing,
                           Dialing::Begin(address, peer.rank, self_, options_.shared_memory,
                                          options_.streams, deadline));
  poll_.WatchOut(peer.dialing->fd(), peer.rank);
  return absl::OkStatus();
}

absl::Status PeerConnections::ContinueDialing(Peer& peer) {
  switch (peer.dialing->Continue()) {
    case Dialing::State::kGreeting:
      return absl::OkStatus();
    case Dialing::State::kConnected:
      peer.out = peer.dialing->Take();
      peer.dialing.reset();
      poll_.WatchOut(peer.out->fd(), peer.rank);
      return absl::OkStatus();
    case Dialing::State::kRefused: {
      const std::string why = peer.dialing->why();
      peer.dialing.reset();
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", self_.rank, " cannot talk to ", peer.Name(), ": ", why));
    }
    case Dialing::State::kEnded:
      peer.dialing.reset();
  }
  return absl::OkStatus();
}

PeerConnections::News PeerConnections::Accept() {
  News news;
  for (Accepted& accepted : acceptor_.Accept(options_.single_copy)) {
    Peer& peer = peers_.At(accepted.rank);
    if (accepted.stream != 0) {
      early_streams_.push_back(std::move(accepted));
      continue;
    }
    if (peer.in != nullptr) {
      news.second = {absl::InvalidArgumentError(absl::StrCat(
                         "two processes say that they are rank ", peer.rank, ": ", peer.in_from,
                         " and ", accepted.from, "; was one started twice?")),
                     peer.rank};
      accepted.connection->SendNotice({Notice::kFailed, news.second});
      continue;
    }
    peer.host = accepted.host;
    peer.in_from = accepted.from;
    peer.in = std::move(accepted.connection);
    poll_.WatchIn(peer.in->fd(), peer.rank);
    local_peers_ += accepted.local;
    news.connected.push_back(&peer);
  }
  AddStreams();
  return news;
}

void PeerConnections::Close() {
  acceptor_.Close();
  early_streams_.clear();
  for (const auto& peer : peers_.all()) {
    if (peer != nullptr) peer->dialing.reset();
  }
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
