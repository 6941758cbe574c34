// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/transport/transport.h"
#include "proto/base/unique_fd.h"

namespace hlaunch {

// What a rank says about itself or others beside its messages.
struct News {
  enum Kind : uint32_t { kLeft = 1, kFailed = 2, kGone = 3 };  // kGone is never sent: a death.
  Kind kind;
  Failure failure{};  // With kFailed.
  bool sends =
      false;  // With kLeft: the one who left has a way to this rank, and said it there, too.
};

// News as it travels: always whole, text cut to size.
struct NewsPacket {
  uint32_t kind;
  int32_t rank;
  int32_t code;
  uint32_t length;
  char text[496];
};
static_assert(sizeof(NewsPacket) == 512 && std::is_trivially_copyable_v<NewsPacket>);

NewsPacket Pack(const News& news);
News Unpack(const NewsPacket& packet);  // What makes no sense is a death.

// What precedes the bytes of a message.
struct FrameHead {
  uint64_t number = 0;
  Call call;
  uint64_t size = 0;
};
static_assert(sizeof(FrameHead) == 32 && std::is_trivially_copyable_v<FrameHead>);

// The sending end of the way from this rank to another. The receiver answers with news only.
// Belongs to the thread of its transport, as InLink does; neither ever blocks.
class OutLink {
 public:
  virtual ~OutLink() = default;

  // For an edge-triggered epoll: readable when Hear has something, writable when Push may go on.
  virtual int fd() const = 0;
  // More of that kind; a Push may add some.
  virtual std::span<const int> side_fds() const { return {}; }

  // Hands over the rest of `message`; false if there is no room now: then go on with the same one.
  // It is `done` at once, or in a later Poll, which says whether any has become so.
  virtual bool Push(Outgoing* message) = 0;
  virtual bool Poll() = 0;
  // Whether all that was handed over is done.
  virtual bool Settled() const = 0;

  // Asks for an event on fd when Push or Poll could get on; false if they can already.
  virtual bool Arm() = 0;

  // Tells the receiver, if it can be told now.
  virtual void Tell(const News& news) = 0;
  virtual std::vector<News> Hear() = 0;

  // The bytes of what is not done may go away as soon as this returns; after Tell.
  virtual void Withdraw() = 0;
};

// The receiving end.
class InLink {
 public:
  virtual ~InLink() = default;

  // For an edge-triggered epoll: readable when Hear, Front or Take may have more than when they
  // last had nothing. What was read ahead of them makes no event: ask them before sleeping on it.
  virtual int fd() const = 0;
  // Takes a further stream of the same sender, number `stream` from 1 on, to be watched as well;
  // false: it has no use for it.
  virtual bool AddSide(int /*stream*/, UniqueFd /*fd*/) { return false; }

  // The oldest message that has begun to arrive, or null.
  virtual const FrameHead* Front() = 0;

  // Goes on with the bytes of Front into `into`, which has its size and is the same every time.
  // True once all are there; Front is then the next one.
  virtual bool Take(std::span<std::byte> into) = 0;

  // After Front or Take had nothing: asks for an event on fd when they could get on; false if they
  // can already.
  virtual bool Arm() = 0;

  virtual void Tell(const News& news) = 0;
  virtual std::vector<News> Hear() = 0;
};

}  // namespace hlaunch
