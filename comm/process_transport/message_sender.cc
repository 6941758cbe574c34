// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/message_sender.h"

namespace hlaunch {

void MessageSender::Start(Outgoing* message) {
  Peer& peer = peers_.At(message->peer);
  peer.sending.push_back(message);
  if (!peer.is_sending) {
    peer.is_sending = true;
    sending_.push_back(&peer);
  }
  if (peer.out != nullptr && SendTo(peer) && peer.sending.empty() && sending_.back() == &peer &&
      peer.out->Settled()) {
    sending_.pop_back();
    peer.is_sending = false;
  }
}

bool MessageSender::SendTo(Peer& peer) {
  bool moved = false;
  while (!peer.sending.empty() && peer.out->Push(peer.sending.front())) {
    peer.sending.pop_front();
    moved = true;
  }
  moved |= peer.out->Poll();
  moved_ |= moved;
  for (const auto fds = peer.out->stream_fds(); peer.watched_streams < fds.size();) {
    poll_.WatchOutStream(fds[peer.watched_streams++], peer.rank);
  }
  return moved;
}

bool MessageSender::SendToEach() {
  bool moved = false;
  std::erase_if(sending_, [&](Peer* peer) {
    if (peer->out == nullptr) return false;
    moved |= SendTo(*peer);
    peer->is_sending = !peer->sending.empty() || !peer->out->Settled();
    return !peer->is_sending;
  });
  return moved;
}

bool MessageSender::Arm() {
  for (Peer* peer : sending_) {
    if (peer->out != nullptr && !peer->out->Arm()) return false;
  }
  return true;
}

void MessageSender::Clear() {
  for (const auto& peer : peers_.all()) {
    if (peer == nullptr) continue;
    peer->sending.clear();
    peer->is_sending = false;
  }
  sending_.clear();
}

}  // namespace hlaunch
