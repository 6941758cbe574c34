// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm/process_transport/peer.h"

namespace hlaunch {

// Receives the messages of a transport: matches each message that arrives with the oldest receive
// that was started for it, and keeps unexpected ones. Belongs to the transport's thread; never
// blocks.
class MessageReceiver {
 public:
  // Called when a peer's call does not match this rank's call, or when a message has another size
  // or is too large for this host. It must call Clear.
  using Fail = std::function<void(Failure)>;

  // `peers` outlive the receiver.
  MessageReceiver(Rank self, Peers& peers, Fail fail)
      : self_(self), peers_(peers), fail_(std::move(fail)) {}

  void Start(Incoming* message);

  // Says which collective this rank is in. A peer that sends another call with the same number
  // makes a mismatch.
  void Enter(const Call& call, uint64_t number);
  // Looks for a mismatch among the messages that have begun to arrive and that this rank has not
  // asked for.
  void FindMismatch();

  // Takes what has arrived from `peer`, up to the last message that this rank has asked for.
  // Returns whether any message was moved.
  bool ReceiveFrom(Peer& peer);
  bool ReceiveFromAll();
  // The same for all peers that this rank has asked for a message.
  bool ReceivePosted();

  // Asks for events when a receive can go on; false if one can already.
  bool Arm();

  // The peers that this rank has asked for a message.
  const std::vector<Peer*>& receiving() const { return receiving_; }
  // Whether it has asked for a message from any peer.
  bool receives_from_any() const { return !from_any_.empty(); }

  // Forgets all receives.
  void Clear();

  // Whether any message was moved since the last ResetMoved.
  bool moved() const { return moved_; }
  void ResetMoved() { moved_ = false; }

 private:
  bool TakeUnexpected(Peer& peer, Incoming* message);
  Incoming* TakePosted(Peer& peer, const FrameHead& head);
  bool MatchFront(Peer& peer, const FrameHead& head);
  bool KeepUnexpected(Peer& peer, const FrameHead& head);
  void FinishFront(Peer& peer);
  bool Matches(const Peer& peer, const Incoming& message, const FrameHead& head);
  bool IsMismatch(const Peer& peer, const FrameHead& head);
  void AddReceiving(Peer& peer);

  const Rank self_;
  Peers& peers_;
  const Fail fail_;
  std::vector<Incoming*> from_any_;  // Receives that any peer may answer.
  std::vector<Peer*> receiving_;
  size_t unexpected_count_ = 0;  // The messages of all peers together.
  Message entered_;              // The collective this rank is in; kSend before the first.
  bool moved_ = false;
};

}  // namespace hlaunch
