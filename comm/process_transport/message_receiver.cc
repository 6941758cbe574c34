// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#include "comm/process_transport/message_receiver.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hlaunch {
namespace {

uint64_t HostMemory() {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size)
                               : uint64_t{1} << 40;
}

}  // namespace

inline void MessageReceiver::AddReceiving(Peer& peer) {
  if (!peer.is_receiving) receiving_.push_back(&peer);
  peer.is_receiving = true;
}

void MessageReceiver::Start(Incoming* message) {
  if (message->peer == kAnyRank) {
    for (const auto& peer : peers_.all()) {
      if (peer != nullptr && TakeUnexpected(*peer, message)) return;
    }
    from_any_.push_back(message);
    return;
  }
  Peer& peer = peers_.At(message->peer);
  if (TakeUnexpected(peer, message)) return;
  peer.posted.push_back(message);
  AddReceiving(peer);
}

bool MessageReceiver::Matches(const Peer& peer, const Incoming& message, const FrameHead& head) {
  if (head.call == message.call && head.size == message.bytes.size()) return true;
  fail_({Mismatch(self_, message, message.bytes.size(), peer.Name(), head.call, head.size),
         peer.rank});
  return false;
}

// Gives `message` an unexpected message if there is one for it.
bool MessageReceiver::TakeUnexpected(Peer& peer, Incoming* message) {
  // A message that is still arriving is the last one of the list and stays there.
  const auto end = peer.unexpected.end() - (peer.target == Peer::Target::kUnexpected ? 1 : 0);
  const auto it =
      std::find_if(peer.unexpected.begin(), end, [&](const UnexpectedMessage& unexpected) {
        return SameLane(*message, unexpected.head.call, unexpected.head.number);
      });
  if (it == end) return false;
  message->peer = peer.rank;
  if (!Matches(peer, *message, it->head)) return true;
  std::copy(it->bytes.begin(), it->bytes.end(), message->bytes.begin());
  peer.unexpected.erase(it);
  --unexpected_count_;
  MarkDone(message);
  return true;
}

// Removes and returns the oldest receive that a message with `head` answers; null if there is none.
Incoming* MessageReceiver::TakePosted(Peer& peer, const FrameHead& head) {
  for (std::vector<Incoming*>* const started : {&peer.posted, &from_any_}) {
    const auto it = std::find_if(started->begin(), started->end(), [&](const Incoming* message) {
      return SameLane(*message, head.call, head.number);
    });
    if (it == started->end()) continue;
    Incoming* const message = *it;
    started->erase(it);
    message->peer = peer.rank;
    return message;
  }
  return nullptr;
}

// Returns whether `peer` is in another call with the same number as this rank's call. The group has
// failed then.
bool MessageReceiver::IsMismatch(const Peer& peer, const FrameHead& head) {
  if (entered_.call.verb == Verb::kSend || !SameLane(entered_, head.call, head.number) ||
      head.call == entered_.call) {
    return false;
  }
  fail_({Mismatch(self_, entered_, 0, peer.Name(), head.call, 0), peer.rank});
  return true;
}

void MessageReceiver::FindMismatch() {
  for (const auto& peer : peers_.all()) {
    if (peer == nullptr || peer->in == nullptr) continue;
    if (peer->target != Peer::Target::kUnmatched) continue;
    const FrameHead* const head = peer->in->Front();
    if (head != nullptr && IsMismatch(*peer, *head)) return;
  }
}

void MessageReceiver::Enter(const Call& call, uint64_t number) {
  entered_.call = call;
  entered_.number = number;
  if (unexpected_count_ == 0) return;
  for (const auto& peer : peers_.all()) {
    if (peer == nullptr) continue;
    for (const UnexpectedMessage& unexpected : peer->unexpected) {
      if (IsMismatch(*peer, unexpected.head)) return;
    }
  }
}

// Makes room for a message that this rank has not asked for; returns false if the group has failed.
// The size comes from the peer, so it may be wrong.
bool MessageReceiver::KeepUnexpected(Peer& peer, const FrameHead& head) {
  static const uint64_t most = HostMemory();
  UnexpectedMessage message{head, {}};
  try {
    if (head.size <= most) message.bytes.resize(head.size);
  } catch (const std::bad_alloc&) {
  }
  if (message.bytes.size() != head.size) {
    fail_({absl::ResourceExhaustedError(absl::StrCat(
               peer.Name(), " announces a message of ", head.size, " bytes, ", Text(head.call),
               ", which rank ", self_, " has not asked for and has no memory for")),
           peer.rank});
    return false;
  }
  peer.unexpected.push_back(std::move(message));
  ++unexpected_count_;
  peer.target = Peer::Target::kUnexpected;
  return true;
}

// Decides where the message at the front of `peer.in` goes; returns false if the group has failed.
inline bool MessageReceiver::MatchFront(Peer& peer, const FrameHead& head) {
  if (Incoming* const message = TakePosted(peer, head)) {
    if (!Matches(peer, *message, head)) return false;
    peer.target = Peer::Target::kPosted;
    peer.arriving = message;
    AddReceiving(peer);  // A receive from any rank becomes a receive from this peer.
    return true;
  }
  if (IsMismatch(peer, head)) return false;
  return KeepUnexpected(peer, head);
}

// Called when all bytes of the message at the front have arrived.
inline void MessageReceiver::FinishFront(Peer& peer) {
  const Peer::Target target = std::exchange(peer.target, Peer::Target::kUnmatched);
  if (target == Peer::Target::kPosted) {
    MarkDone(std::exchange(peer.arriving, nullptr));
    return;
  }
  // A receive for the message may have been started while it arrived.
  if (Incoming* const message = TakePosted(peer, peer.unexpected.back().head)) {
    TakeUnexpected(peer, message);
  }
}

bool MessageReceiver::ReceiveFrom(Peer& peer) {
  bool moved = false;
  while (peer.in != nullptr) {
    if (peer.target == Peer::Target::kUnmatched && peer.posted.empty() && from_any_.empty()) {
      return moved;
    }
    const FrameHead* const head = peer.in->Front();
    if (head == nullptr) return moved;
    if (peer.target == Peer::Target::kUnmatched && !MatchFront(peer, *head)) return true;
    const auto into = peer.target == Peer::Target::kUnexpected
                          ? std::span<std::byte>(peer.unexpected.back().bytes)
                          : peer.arriving->bytes;
    if (!peer.in->Take(into)) return moved;
    moved = moved_ = true;
    FinishFront(peer);
  }
  return moved;
}

bool MessageReceiver::ReceiveFromAll() {
  bool moved = false;
  for (const auto& peer : peers_.all()) moved |= peer != nullptr && ReceiveFrom(*peer);
  return moved;
}

bool MessageReceiver::ReceivePosted() {
  bool moved = false;
  // By index, because a failure clears the list meanwhile.
  for (size_t i = 0; i < receiving_.size(); ++i) moved |= ReceiveFrom(*receiving_[i]);
  if (!from_any_.empty()) moved |= ReceiveFromAll();
  std::erase_if(receiving_, [](Peer* peer) {
    peer->is_receiving = !peer->posted.empty() || peer->arriving != nullptr;
    return !peer->is_receiving;
  });
  return moved;
}

bool MessageReceiver::Arm() {
  if (!from_any_.empty()) {
    for (const auto& peer : peers_.all()) {
      if (peer != nullptr && peer->in != nullptr && !peer->in->Arm()) return false;
    }
  }
  for (Peer* peer : receiving_) {
    if (peer->in != nullptr && !peer->in->Arm()) return false;
  }
  return true;
}

void MessageReceiver::Clear() {
  for (const auto& peer : peers_.all()) {
    if (peer == nullptr) continue;
    peer->posted.clear();
    peer->is_receiving = false;
    peer->arriving = nullptr;
    if (peer->target == Peer::Target::kPosted) peer->target = Peer::Target::kUnmatched;
  }
  receiving_.clear();
  from_any_.clear();
}

}  // namespace hlaunch
