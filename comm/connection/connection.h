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

// What a rank tells another rank besides its messages. A value.
struct Notice {
  enum Kind : uint32_t {
    kLeft = 1,          // The rank left the group on purpose.
    kFailed = 2,        // The group has failed; `failure` says why.
    kDisconnected = 3,  // The connection ended without a notice. Never sent: the reader adds it.
    kAsks = 4,          // The rank waited in vain, and asks whom the other rank waits for.
  };
  Kind kind;
  Failure failure{};   // With kFailed; with kLeft the status says why, or is OK.
  bool sends = false;  // With kLeft: the rank also has a connection in the other direction, and
                       // sent the notice on it, too.
};

// A notice as it is sent: always of one size, with the text cut to fit.
struct NoticePacket {
  uint32_t kind;
  int32_t rank;
  int32_t code;
  uint32_t length;
  char text[496];
};
static_assert(sizeof(NoticePacket) == 512 && std::is_trivially_copyable_v<NoticePacket>);

NoticePacket Pack(const Notice& notice);
// A packet that makes no sense becomes kDisconnected.
Notice Unpack(const NoticePacket& packet);

// The header that precedes the bytes of a message.
struct FrameHead {
  uint64_t number = 0;
  Call call;
  uint64_t size = 0;
};
static_assert(sizeof(FrameHead) == 32 && std::is_trivially_copyable_v<FrameHead>);

// The sending end of a connection, which carries messages in one direction, from this rank to
// another. The receiver answers with notices only. Belongs to one thread, that of its transport;
// no method blocks.
class OutConnection {
 public:
  virtual ~OutConnection() = default;

  // For an edge-triggered epoll: readable when ReadNotices has something, writable when Push can
  // go on.
  virtual int fd() const = 0;
  // Further descriptors to watch for writing; a Push may add some.
  virtual std::span<const int> stream_fds() const { return {}; }

  // Sends the rest of `message`. Returns false if there is no room now: call it again later with
  // the same message. The message is `done` at once or in a later Poll.
  virtual bool Push(Outgoing* message) = 0;
  // Marks messages as done that the receiver has read by now; returns whether there were any.
  virtual bool Poll() = 0;
  // Whether all messages that Push has accepted are done.
  virtual bool Settled() const = 0;

  // Asks for an event on fd() when Push or Poll can go on; false if they can already.
  virtual bool Arm() = 0;

  // Sends a notice to the receiver if there is room for it now.
  virtual void SendNotice(const Notice& notice) = 0;
  virtual std::vector<Notice> ReadNotices() = 0;

  // Takes back the messages that are not done: their memory may be freed when this returns. To be
  // called after SendNotice.
  virtual void Withdraw() = 0;
};

// The receiving end of a connection. Belongs to one thread; no method blocks.
class InConnection {
 public:
  virtual ~InConnection() = default;

  // For an edge-triggered epoll: readable when ReadNotices, Front or Take may have more than at
  // their last call. Data that was read ahead makes no event, so call them before waiting.
  virtual int fd() const = 0;
  // Adds a further TCP stream of the same sender; `stream` counts from 1. Returns false if the
  // connection cannot use it, else the caller watches its descriptor as well.
  virtual bool AddStream(int /*stream*/, UniqueFd /*fd*/) { return false; }

  // The oldest message that has begun to arrive, or null.
  virtual const FrameHead* Front() = 0;

  // Reads more bytes of the message at Front into `into`, which has the size of the message and is
  // the same at every call. Returns true when all bytes are there; Front is then the next message.
  virtual bool Take(std::span<std::byte> into) = 0;

  // To be called when Front or Take has returned nothing: asks for an event on fd() when they can
  // go on; false if they can already, or if they have read something for ReadNotices.
  virtual bool Arm() = 0;

  virtual void SendNotice(const Notice& notice) = 0;
  virtual std::vector<Notice> ReadNotices() = 0;
};

}  // namespace hlaunch
