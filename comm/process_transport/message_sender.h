// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <vector>

#include "comm/process_transport/event_poll.h"
#include "comm/process_transport/peer.h"

namespace hlaunch {

// Sends the messages of a transport, to each peer in the order of their starts. Belongs to the
// transport's thread; never blocks.
class MessageSender {
 public:
  // `peers` and `poll` outlive the sender.
  MessageSender(Peers& peers, EventPoll& poll) : peers_(peers), poll_(poll) {}

  // Takes the message. If the peer is connected, sends as much as there is room for.
  void Start(Outgoing* message);

  // Continues to send to all peers; returns whether any message was moved.
  bool SendAll() { return !sending_.empty() && SendToEach(); }

  // Asks for events when SendAll can go on; false if it can already.
  bool Arm();

  // The peers that have messages which are not done.
  const std::vector<Peer*>& sending() const { return sending_; }

  // Forgets all messages.
  void Clear();

  // Whether any message was moved since the last ResetMoved.
  bool moved() const { return moved_; }
  void ResetMoved() { moved_ = false; }

 private:
  bool SendTo(Peer& peer);
  bool SendToEach();

  Peers& peers_;
  EventPoll& poll_;
  std::vector<Peer*> sending_;
  bool moved_ = false;
};

}  // namespace hlaunch
