// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The hlaunch authors

#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "comm/connection/connection.h"

// Sends and receives bytes on non-blocking TCP sockets. For tcp_*_connection.cc.

namespace hlaunch::tcp {

// A frame that contains a notice has this verb, which no collective has.
inline constexpr Verb kNoticeVerb{0xff};

// Returns where part `stream` of a message begins if the message uses `streams` streams. If
// `stream` is the number after the last stream, returns where the message ends.
size_t PartBegin(size_t size, int streams, int stream);

// Reads the next bytes of `socket`. Returns 0 if there are none now, and sets `ended` if the stream
// has ended.
size_t ReceiveSome(int socket, std::span<std::byte> into, bool* ended);

struct SendResult {
  size_t size = 0;  // The number of bytes sent.
  bool broken =
      false;  // The stream is broken. If false and bytes remain, there is no room for them now.
};
SendResult SendSome(int socket, std::span<iovec> parts);

// Limits the unsent bytes that wait in the kernel, so that they stay in the cache.
void LimitUnsent(int socket);

// Reads a stream a little ahead, so that a small message costs one system call, not one for its
// head and one for its bytes.
class ReadAheadStream {
 public:
  explicit ReadAheadStream(int socket) : socket_(socket) {}

  // Returns how many bytes it has read. If these are fewer than `into` has, there are no more now.
  // It does not stop when recv returns fewer bytes than wanted: the stream's end may follow
  // directly, and makes no event of its own.
  size_t Read(std::span<std::byte> into, bool* ended);

 private:
  size_t TakeAhead(std::span<std::byte> into);

  const int socket_;
  size_t begin_ = 0, end_ = 0;  // The unread part of `ahead_`.
  std::byte ahead_[sizeof(FrameHead) + 1024];
};

// Collects a record of fixed size from a stream that delivers it in parts.
template <typename Record>
class RecordReader {
 public:
  // Returns true once the record is complete. Sets `ended` at the stream's end.
  bool Read(ReadAheadStream& stream, bool* ended) {
    size_ += stream.Read(std::span(bytes_).subspan(size_), ended);
    return size_ == sizeof(Record);
  }
  Record Get() {
    Record record;
    std::memcpy(&record, bytes_, sizeof record);
    size_ = 0;
    return record;
  }

 private:
  size_t size_ = 0;
  std::byte bytes_[sizeof(Record)];
};

}  // namespace hlaunch::tcp
