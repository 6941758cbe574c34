// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm/connection/connect.h"
#include "comm/connection/connection.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"

namespace hlaunch {

// A message that arrived before this rank asked for it.
struct UnexpectedMessage {
  FrameHead head;
  std::vector<std::byte> bytes;
};

// What a transport knows about one other rank: the connections to it and from it, and the messages
// on them. Belongs to the transport's thread.
struct Peer {
  explicit Peer(Rank rank_in) : rank(rank_in) {}

  const Rank rank;
  std::string host;  // Empty until it is known.

  // To the peer; see message_sender.h.
  std::unique_ptr<Dialing> dialing;  // Becomes `out` when both have proved themselves.
  Duration lookup_time{};  // How long the last look-up of its address, in vain, might take.
  Instant next_lookup{};   // When the next one may begin.
  int dialed = 0;          // How often this rank has dialed.
  std::unique_ptr<OutConnection> out;
  bool out_broken = false;        // `out` broke or could not be made; `in` will say why.
  size_t watched_streams = 0;     // How many of out->stream_fds() the epoll watches.
  std::deque<Outgoing*> sending;  // Messages that `out` has not accepted yet.
  bool is_sending = false;        // The sender has this peer in its list.

  // From the peer; see message_receiver.h.
  std::unique_ptr<InConnection> in;
  std::string in_from;                       // The address that `in` comes from.
  std::vector<Incoming*> posted;             // Receives that no message has arrived for.
  std::deque<UnexpectedMessage> unexpected;  // The last one may still be arriving.
  bool is_receiving = false;                 // The receiver has this peer in its list.
  // Where the bytes of the message at the front of `in` go.
  enum class Target { kUnmatched, kPosted, kUnexpected };
  Target target = Target::kUnmatched;
  Incoming* arriving = nullptr;  // With kPosted.

  // The peer has said that it left the group: on `in`, where nothing follows, or on `out`.
  bool left_in = false, left_out = false;
  bool sends = true;    // With left_out: messages of the peer may still arrive.
  std::string goodbye;  // Why it left, if it said so.
  // It ended without a word: `in` broke, or `out` where there is no `in`. What it sent may still be
  // taken.
  bool gone = false;

  // "rank 3 on node1"
  std::string Name() const { return absl::StrCat("rank ", rank, host.empty() ? "" : " on ", host); }
};

// The peers of one rank, made when they are first needed.
class Peers {
 public:
  Peers(Rank self, int size) : self_(self), peers_(static_cast<size_t>(size)) {}

  int size() const { return static_cast<int>(peers_.size()); }
  Peer& At(Rank rank) {
    HLAUNCH_CHECK(rank >= 0 && rank < size() && rank != self_);
    if (peers_[rank] == nullptr) peers_[rank] = std::make_unique<Peer>(rank);
    return *peers_[rank];
  }
  // By rank; null for those that were not needed yet and for this rank itself.
  const std::vector<std::unique_ptr<Peer>>& all() const { return peers_; }

 private:
  const Rank self_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace hlaunch
